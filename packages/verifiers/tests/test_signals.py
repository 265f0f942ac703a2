"""Rubrics: failures that stay visible, groups, judges, names."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from conftest import Make

from llenvs import Action
from llenvs.core.errors import InvalidAction, InvalidOption, UnknownBackend
from llenvs.core.math_verify_timeouts import within
from llenvs.inference.scripted import ScriptedBackend


def step(env: Any, task_index: int, text: str) -> Any:
    return env.step(env.reset(options={"task_index": task_index})[0], Action(text))


def test_a_function_that_raises_is_an_error_and_no_zero(make: Make) -> None:
    env = make("vf_sums", args={"failing": True})
    result = step(env, 3, "<think>a</think><answer>6</answer>")
    broken, total = result.rewards["broken"], result.rewards["total_reward"]
    assert (broken.reward, broken.weight, broken.metadata) == (None, 1.0, {"error": "LookupError: no such table"})
    assert total.reward is None
    assert total.metadata == {"error": "broken: LookupError: no such table", "upstream": pytest.approx(2.03)}
    assert env.spec.is_success(result.rewards) is None  # an evaluation records an error
    assert result.rewards["exact"].reward == 1.0
    assert result.rewards.total == pytest.approx(2.03)


def test_a_metric_that_raises_does_not_take_the_reward_away(make: Make) -> None:
    result = step(make("vf_sums", args={"failing": True, "failing_weight": 0.0}), 3, "<answer>6</answer>")
    assert result.rewards["broken"].metadata["error"] == "LookupError: no such table"
    assert result.rewards["total_reward"].reward == pytest.approx(2.0 - 0.09 + 0.2 * 0.6)


def test_a_group_is_scored_together(make: Make) -> None:
    env = make("vf_sums", args={"group": True})
    assert env.has_group_rewards
    results = [
        step(env, 1, text) for text in ("<answer>2</answer>", "2 is too long for the group", "<answer>2</answer>")
    ]
    alone = results[0].rewards["shorter"]
    assert (alone.reward, alone.weight, alone.metadata) == (0.0, 0.5, {"group_size": 1})
    bundles = env.score_group([result.next_state for result in results])
    assert [bundle["shorter"].reward for bundle in bundles] == [1.0, 0.0, 1.0]
    assert bundles[0]["shorter"].metadata == {"group_size": 3}
    totals = [bundle["total_reward"].reward for bundle in bundles]
    assert totals == [pytest.approx(bundle.total) for bundle in bundles]
    advantages = [bundle["total_reward"].metadata["advantage"] for bundle in bundles]
    assert advantages == [pytest.approx(total - sum(totals) / 3) for total in totals]
    fresh = make("vf_sums", args={"group": True})  # which has seen none of the episodes
    assert fresh.score_group([result.next_state for result in results]) == bundles


def test_what_is_no_group(make: Make) -> None:
    env = make("vf_sums", args={"group": True})
    first, second = step(env, 1, "2").next_state, step(env, 2, "4").next_state
    with pytest.raises(InvalidAction, match="all of one task"):
        env.score_group([first, second])
    with pytest.raises(InvalidAction, match="at least one"):
        env.score_group([])
    with pytest.raises(InvalidAction, match="only finished"):
        env.score_group([env.reset(options={"task_index": 1})[0]])


def test_a_judge_is_any_backend_and_is_asked_once(make: Make) -> None:
    asked: list[Any] = []

    def judge(request: Any) -> str:
        asked.append(request)
        return "Yes." if "Response:\n```\n4\n```" in request.messages[0].content else "no"

    env = make("vf_judged", judge=ScriptedBackend(judge))
    assert env.spec.deterministic is False
    right = step(env, 2, "4")
    assert right.rewards["says_yes"].reward == 1.0
    assert step(env, 2, "5").rewards["says_yes"].reward == 0.0
    assert "Ground truth answer:\n```\n4\n```" in asked[0].messages[0].content
    assert (asked[0].sampling.temperature, asked[0].sampling.max_tokens) == (0.0, 5)
    assert len(asked) == 2
    assert right.next_state.hidden["signals"] == right.rewards.signals


def test_a_judge_that_fails_is_an_error(make: Make) -> None:
    def judge(request: Any) -> str:
        raise OSError("no route to the judge")

    result = step(make("vf_judged", judge=ScriptedBackend(judge)), 2, "4")
    said = result.rewards["says_yes"]
    assert said.reward is None
    assert "no route to the judge" in said.metadata["error"]
    assert result.rewards["total_reward"].reward is None


def test_judges_by_name_and_what_is_none(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    env = make("vf_judged", judge={"backend": "scripted", "script": "yes"})
    assert step(env, 2, "4").rewards["says_yes"].reward == 1.0
    with pytest.raises(UnknownBackend, match="did you mean 'openai'"):
        make("vf_judged", judge={"backend": "openay"})
    with pytest.raises(InvalidOption, match=r"judge: must be a backend or name one, got 'gpt'"):
        make("vf_judged", judge="gpt")


def test_mathematics_and_its_swallowed_failures(make: Make) -> None:
    env = make("vf_judged", args={"kind": "math"})
    assert step(env, 2, r"\boxed{\frac{8}{2}}").rewards["correct_answer"].reward == 1.0
    assert step(env, 2, r"\boxed{5}").rewards["correct_answer"].reward == 0.0
    (rubric,) = [r for r in env.upstream.rubric.rubrics if type(r).__name__ == "MathRubric"]
    rubric.executor.shutdown(wait=True)  # from now on its worker cannot be asked
    failed = step(env, 2, r"\boxed{4}").rewards["correct_answer"]
    assert failed.reward is None
    assert failed.metadata["error"].startswith("Math verification failed")


def test_scorers_that_use_the_alarm_of_the_main_thread(make: Make) -> None:
    """math-verify alone raises in any other thread, and environments run in one."""
    env = make("vf_judged", args={"kind": "math_verify"})
    assert step(env, 2, r"$\frac{8}{2}$").rewards["equal"].reward == 1.0
    assert step(env, 2, "$5$").rewards["equal"].reward == 0.0


def test_time_limits_in_threads() -> None:
    outcome: list[Any] = []

    def busy(seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        return "done"

    def work() -> None:
        for seconds in (30.0, 0.0):
            try:
                outcome.append(within(0.05, KeyError)(busy)(seconds))
            except KeyError:
                outcome.append("interrupted")
        outcome.append(within(None, KeyError)(busy)(0.0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert outcome == ["interrupted", "done", "done"]


def test_names_are_unique_and_the_sum_is_the_upstreams(make: Make) -> None:
    result = step(make("vf_strange", args={"kind": "names"}), 0, "yes")
    assert [(s.name, s.reward, s.weight) for s in result.rewards] == [
        ("yes", 1.0, 1.0), ("total_reward_2", 0.25, 2.0), ("yes_2", 1.0, 0.5), ("yes_3", 1.0, 0.1),
        ("num_turns", 1.0, 0.0), ("total_reward", 2.1, 0.0),
    ]  # fmt: skip
    assert result.rewards.total == pytest.approx(2.1)


def test_a_rubric_that_scores_in_its_own_way(make: Make) -> None:
    result = step(make("vf_strange", args={"kind": "own_scoring"}), 0, "yes")
    assert [(s.name, s.reward, s.weight) for s in result.rewards] == [
        ("style", 0.5, 0.0), ("num_turns", 1.0, 0.0), ("reward", 0.75, 1.0), ("total_reward", 0.75, 0.0),
    ]  # fmt: skip


def test_extra_rewards_beside_the_upstreams(make: Make) -> None:
    env = make("vf_sums", extra_rewards=[{"type": "format", "tag": "answer", "weight": 0.5}])
    result = step(env, 1, "<answer>2</answer>")
    assert (result.rewards["format"].reward, result.rewards["format"].weight) == (1.0, 0.5)
