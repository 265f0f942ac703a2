"""The promises of the contract, on one environment of each kind, and behind a server."""

from pathlib import Path

import pytest

import llenvs
from llenvs.core.environment import Environment
from llenvs.testing import check_environment

QUESTIONS = [{"question": f"What is {i} plus {i}?", "answer": str(2 * i)} for i in range(20, 26)]


def test_a_list_of_dicts() -> None:
    options = {"data": QUESTIONS, "scoring": "numeric", "seed": 3}
    check_environment("huggingface/dataset", options=options, second_process=False)


def test_files_in_a_second_process(data: Path) -> None:
    check_environment("huggingface/gsm8k", options={"data_files": str(data / "gsm8k_main_test.jsonl"), "size": 4})


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("gpqa_diamond", "gpqa_diamond_train"),
        ("hotpot_qa", "hotpot_qa_distractor_validation"),
        ("math_500", "math_500_test"),
    ],
)
def test_presets(name: str, file: str, data: Path) -> None:
    def make() -> Environment[dict[str, object]]:
        return llenvs.make(
            f"huggingface/{name}", data_files=str(data / f"{file}.jsonl"), extra_rewards=["format"], seed=1
        )

    check_environment(make, second_process=False, tasks=2)


def test_programs(data: Path) -> None:
    def make() -> Environment[dict[str, object]]:
        path = str(data / "livecodebench_test.jsonl")
        return llenvs.make("huggingface/livecodebench", data_files=path, allow_code_execution=True)

    check_environment(make, second_process=False, tasks=1)


def test_behind_a_server() -> None:
    pytest.importorskip("llenvs_container")
    here = llenvs.make("huggingface/dataset", data=QUESTIONS, scoring="numeric")
    with llenvs.make("huggingface/dataset", data=QUESTIONS, scoring="numeric", container="process") as there:
        for task in range(3):
            ours, _ = here.reset(options={"task_index": task})
            theirs, _ = there.reset(options={"task_index": task})
            assert theirs == ours
            for text in ("<answer>42</answer>", "It is $40.00.", ""):
                assert there.step(ours, llenvs.Action(text)) == here.step(theirs, llenvs.Action(text))
