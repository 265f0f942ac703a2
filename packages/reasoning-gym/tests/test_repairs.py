"""The scorers that pay for wrong answers: corrected, and as the upstream has them when asked."""

from typing import Any

import pytest

import llenvs
from llenvs import Action


def signal(name: str, answer: str, **options: Any) -> llenvs.Signal:
    with llenvs.make(f"reasoning_gym/{name}", answer_extractor="raw", **options) as env:
        state, _ = env.reset(options={"task_index": 0})
        return env.step(state, Action(answer)).rewards["score"]


def integrand(name: str) -> str:
    with llenvs.make(f"reasoning_gym/{name}") as env:
        text: str = env.reset(options={"task_index": 0})[0].hidden["entry"]["metadata"]["integrand"]
        return text


@pytest.mark.parametrize(
    ("name", "wrong", "worth"),
    [
        ("game_of_life_halting", "I have no idea", 0.0),
        ("complex_arithmetic", "nan", 0.0),
        ("complex_arithmetic", "nan+1j", 0.0),
        ("puzzle24", "6*4*1*1", 0.01),
    ],
)
def test_a_wrong_answer_that_the_upstream_pays_in_full(name: str, wrong: str, worth: float) -> None:
    corrected = signal(name, wrong)
    assert (corrected.reward, dict(corrected.metadata)) == (worth, {"upstream_score": 1.0})
    assert signal(name, wrong, repair_scorers=False).reward == 1.0


def test_the_question_wrapped_in_an_integral_is_no_answer() -> None:
    answer = f"Integral({integrand('simple_integration')}, x)"
    refused = signal("simple_integration", answer)
    assert refused.reward == 0.0
    assert "Integral" in refused.metadata["error"]
    assert signal("simple_integration", answer, repair_scorers=False).reward == 1.0


@pytest.mark.parametrize("name", ["game_of_life_halting", "complex_arithmetic", "puzzle24", "simple_integration"])
def test_right_answers_stay_right(name: str) -> None:
    with llenvs.make(f"reasoning_gym/{name}", size=12) as env:
        for index in range(12):
            state, _ = env.reset(options={"task_index": index})
            result = env.step(state, Action(f"<answer> {state.hidden['entry']['answer']} </answer>"))
            assert result.rewards.total == 1.0
            assert result.rewards["score"].metadata == {}


def test_both_answers_of_game_of_life_halting() -> None:
    with llenvs.make("reasoning_gym/game_of_life_halting", size=10) as env:
        seen = set()
        for index in range(10):
            state, _ = env.reset(options={"task_index": index})
            right = state.hidden["entry"]["answer"]
            seen.add(right)
            worth = {
                text: env.step(state, Action(f"<answer>{text}</answer>")).rewards.total
                for text in ("True", "False")
            }
            assert worth == {"True": float(right == "True"), "False": float(right == "False")}
        assert seen == {"True", "False"}


def test_the_spec_says_what_is_corrected() -> None:
    with llenvs.make("reasoning_gym/puzzle24") as env:
        assert list(env.spec.metadata["repaired"]) == ["puzzle24"]
    with llenvs.make("reasoning_gym/puzzle24", repair_scorers=False) as env:
        assert env.spec.metadata["repaired"] == {}
