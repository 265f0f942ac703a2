"""Values seen at the upstreams, or told by the layouts of the data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llenvs import Action
from llenvs_huggingface.environment import HuggingFaceEnvironment
from llenvs_huggingface.presets import PRESETS, find_preset

Make = Callable[..., HuggingFaceEnvironment]


def expected(env: HuggingFaceEnvironment) -> list[Any]:
    return [env.reset(options={"task_index": i})[0].hidden["expected_answer"] for i in range(len(env))]


def correct(env: HuggingFaceEnvironment, task: int, text: str) -> float | None:
    state, _ = env.reset(options={"task_index": task})
    return env.step(state, Action(text)).rewards["correctness"].reward


def test_gsm8k_answers_are_what_follows_the_last_hashes(make: Make) -> None:
    env = make("gsm8k", "gsm8k_main_test")
    assert list(map(float, expected(env))) == [41, 2300, -7, 7.5, 15000]
    for task, text in enumerate(
        ["It is 41.", "\\boxed{2,300}", "<answer>-7 degrees</answer>", "The answer is $7.50.", "#### 15,000"]
    ):
        assert correct(env, task, text) == 1.0
    assert correct(env, 1, "2,301") == 0.0
    assert correct(env, 2, "7") == 0.0
    assert correct(env, 0, "I do not know.") == 0.0


def test_a_seed_shuffles_first_and_a_size_cuts_then(make: Make) -> None:
    env = make("gsm8k", "gsm8k_main_test", size=3, seed=42)
    states = [env.reset(options={"task_index": i})[0] for i in range(3)]
    assert [s.hidden["row_index"] for s in states] == [4, 2, 3]
    assert [s.hidden["expected_answer"] for s in states] == ["15000", "-7", "7.50"]
    assert len(make("gsm8k", "gsm8k_main_test", size=100)) == 5


def test_the_order_is_that_of_datasets(make: Make) -> None:
    import datasets

    rows = [{"question": str(i), "answer": str(i)} for i in range(50)]
    for seed in (0, 7, 42):
        theirs = datasets.Dataset.from_list(rows).shuffle(seed=seed)["answer"]
        assert expected(make("dataset", data=rows, seed=seed)) == list(theirs)


def test_aime_compares_values(make: Make) -> None:
    env = make("aime_2024", "aime_2024_train")
    assert expected(env) == ["024", "028", "512"]
    assert [correct(env, 0, text) for text in ("24", "024", "24.0", "1024")] == [1.0, 1.0, 1.0, 0.0]
    assert expected(make("di-zhang-fdu/AIME_1983_2024", "aime_1983_2024_train")) == ["60", "27"]


def test_math_500(make: Make) -> None:
    env = make("math_500", "math_500_test")
    for text in ("0.75", "3/4", "So $\\boxed{\\frac{3}{4}}$.", "<answer>$\\frac34$</answer>"):
        assert correct(env, 0, text) == 1.0
    assert correct(env, 0, "\\boxed{\\frac{4}{3}}") == 0.0
    assert correct(env, 1, "\\boxed{(x+2)^2}") == 1.0
    assert correct(env, 1, "\\boxed{(x-2)^2}") == 0.0
    assert correct(env, 2, "\\boxed{3,-3}") == 1.0
    assert correct(env, 3, "\\boxed{(2,\\frac{\\pi}{2})}") == 1.0
    assert [correct(env, 4, text) for text in ("\\boxed{Ann}", "\\boxed{Bo}", "Ann")] == [1.0, 0.0, 1.0]


def test_the_last_box_of_a_solution_is_its_answer(make: Make) -> None:
    assert expected(make("math", "hendrycks_math_algebra_test")) == ["4", "5\\sqrt{2}"]
    env = make("math", "math_real_fewshot")
    assert expected(env) == ["[2,5)", "24", "16", "-\\frac{2}{3}"]
    assert correct(env, 3, "\\boxed{\\frac{-2}{3}}") == 1.0
    assert correct(env, 0, "\\boxed{(2,5)}") == 0.0


def test_arc_labels_may_be_digits_and_options_three(make: Make) -> None:
    env = make("arc_challenge", "arc_challenge_test")
    assert expected(env) == ["B", "B"]
    state, _ = env.reset(options={"task_index": 1})
    assert state.observation.prompt.endswith("\n\nA. sand\nB. nectar\nC. salt")
    assert [correct(env, 1, t) for t in ("B", "(b)", "nectar", "B. nectar", "D", "C", "salt")] == [1] * 4 + [0] * 3


def test_mmlu_counts_from_zero_and_mmlu_pro_has_up_to_ten(make: Make) -> None:
    assert expected(make("mmlu", "mmlu_test")) == ["C", "A"]
    env = make("mmlu_pro", "mmlu_pro_test")
    assert expected(env) == ["C", "B"]
    state, _ = env.reset(options={"task_index": 1})
    assert len(state.hidden["choices"]) == 10
    env = make("mmlu_pro", "mmlu_pro_test", answer_extractor="multiple_choice")
    state, _ = env.reset(options={"task_index": 1})
    assert env.step(state, Action("The answer is (J).")).info["answer"] == "J"
    state, _ = env.reset(options={"task_index": 0})
    assert env.step(state, Action("The answer is (J).")).info["answer"] is None


def test_hotpot_qa(make: Make) -> None:
    env = make("hotpot_qa", "hotpot_qa_distractor_validation")
    state, _ = env.reset(options={"task_index": 0})
    assert state.observation.prompt.startswith(
        "First note\nThe book Blue Lanes was written by Lena Park.\n\nLena Park"
    )
    assert "writer. She was born in Oakford.\n\nOakford\nOakford is a small town.\n\n" in state.observation.prompt
    rewards = env.step(state, Action("<answer>the town of Oakford</answer>")).rewards
    assert rewards["f1"].reward == pytest.approx(2 * (1 / 3) * 1 / (1 / 3 + 1))
    assert rewards["correctness"].reward == 0.0
    assert rewards.total == rewards["f1"].reward
    state, _ = env.reset(options={"task_index": 1})
    assert env.step(state, Action("<answer>Yes.</answer>")).rewards.total == 1.0
    assert env.step(state, Action("<answer>yes they are</answer>")).rewards.total == 0.0  # HotpotQA's own rule


def test_bbh(make: Make) -> None:
    env = make("bbh", "bbh_boolean_expressions_test")
    assert expected(env) == ["True", "False"]
    assert [correct(env, 0, t) for t in ("So the answer is True.", "true", "False")] == [1.0, 1.0, 0.0]
    env = make("bbh", "bbh_date_understanding_test")
    assert [correct(env, 0, t) for t in ("(B)", "the answer is (B).", "B) 05/04/2021", "(A)")] == [1, 1, 1, 0]


def test_truthful_qa(make: Make) -> None:
    env = make("truthful_qa", "truthful_qa_mc_validation")
    (right,) = expected(env)
    assert correct(env, 0, "No, they do not") == 1.0
    assert correct(env, 0, right) == 1.0
    env = make("truthful_qa_generation", "truthful_qa_generation_validation")
    assert correct(env, 0, "No, carrots do not give you night vision.") == 1.0
    assert correct(env, 0, "Yes, carrots give night vision!") == 0.0
    assert correct(env, 0, "I have no comment.") == 1.0


def test_livecodebench_is_judged_by_its_cases(make: Make) -> None:
    env = make("livecodebench", "livecodebench_test", allow_code_execution=True)
    assert correct(env, 0, "```python\nprint(2 * int(input()))\n```") == 1.0
    assert correct(env, 0, "```python\nprint(abs(2 * int(input())))\n```") == 0.0


def test_presets_are_found_by_what_people_call_them() -> None:
    assert len(PRESETS) >= 30
    for name, found in {
        "gsm8k": "openai/gsm8k",
        "openai/gsm8k": "openai/gsm8k",
        "HuggingFaceH4/aime_2024": "HuggingFaceH4/aime_2024",
        "hotpot_qa": "hotpotqa/hotpot_qa",
        "ai2_arc": "allenai/ai2_arc",
        "lukaemon/bbh": "lukaemon/bbh",
        "idavidrein/GPQA": "Idavidrein/gpqa",
    }.items():
        preset = find_preset(name)
        assert preset is not None
        assert preset.repository == found
    assert find_preset("someone/else") is None


def test_every_row_of_the_layouts_is_read(make: Make, data: Path) -> None:
    files = {
        "gpqa_diamond": "gpqa_diamond_train",
        "gsm8k": "gsm8k_main_train",
        "aime_2024": "aime_2024_train",
        "mmlu_pro": "mmlu_pro_test",
    }
    for name, file in files.items():
        env = make(name, file)
        assert len(env) == len((data / f"{file}.jsonl").read_text("utf-8").splitlines())
        assert all(expected(env))
