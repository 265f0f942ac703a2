"""Programs run with limits, and nothing is unpickled."""

import base64
import json
import os
import pickle
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import llenvs
from llenvs import Action
from llenvs.core.errors import InvalidOption
from llenvs_huggingface.programs.packed import unpacked_text
from llenvs_huggingface.programs.run import run_program
from llenvs_huggingface.scoring.program import ProgramScorer, same_output

HUMANEVAL = [
    {
        "task_id": "own/0",
        "prompt": 'import math\n\n\ndef half(x: int) -> float:\n    """Half of x."""\n',
        "canonical_solution": "    return x / 2\n",
        "test": "def check(candidate):\n    assert candidate(4) == 2\n    assert math.isclose(candidate(1), .5)\n",
        "entry_point": "half",
    }
]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("    return x / 2", 1.0),
        ("```python\ndef half(x):\n    return x * 0.5\n```", 1.0),
        ("    return x // 2", 0.0),
        ("    return (", 0.0),
        ("    import sys; sys.exit(0)", 0.0),
        ("    while True: pass", 0.0),
    ],
)
def test_humaneval(answer: str, value: float) -> None:
    env = llenvs.make("huggingface/humaneval", data=HUMANEVAL, allow_code_execution=True, time_limit=2)
    state, _ = env.reset(options={"task_index": 0})
    assert state.observation.prompt == HUMANEVAL[0]["prompt"]
    reward = env.step(state, Action(answer)).rewards["correctness"]
    assert reward.reward == value
    assert ("error" in reward.metadata) == (value == 0.0)


def test_mbpp() -> None:
    row = {"text": "Add one.", "test_list": ["assert f(1) == 2", "assert f(0) == 1"], "test_setup_code": ""}
    env = llenvs.make("huggingface/mbpp", data=[row], allow_code_execution=True)
    state, _ = env.reset(options={"task_index": 0})
    assert state.observation.prompt == (
        "Add one. Your code should pass these tests:\n\nassert f(1) == 2\nassert f(0) == 1"
    )
    assert env.step(state, Action("```python\ndef f(x):\n    return x + 1\n```")).rewards.total == 1.0
    failed = env.step(state, Action("```python\ndef f(x):\n    return x\n```")).rewards["correctness"]
    assert (failed.reward, failed.metadata["error"]) == (0.0, "the tests: AssertionError")


def test_it_must_be_allowed(make: Callable[..., Any]) -> None:
    with pytest.raises(
        InvalidOption, match="allow_code_execution: livecodebench is judged by running the programs"
    ):
        make("livecodebench", "livecodebench_test")


def test_calls_are_compared_by_value() -> None:
    scorer = ProgramScorer(time_limit=5)
    expected = {"function": "pair", "cases": [["1\n[2, 3]", "[1, [2, 3]]"]]}
    right = "class Solution:\n    def pair(self, a, b):\n        print('noise')\n        return a, b\n"
    assert scorer.score(right, expected) == (1.0, None, None)
    assert scorer.score("def pair(a, b):\n    return [b, a]", expected).value == 0.0
    assert "KeyError" in str(scorer.score("x = 1", expected).error)


def test_outputs() -> None:
    assert same_output("1  \n2\n", "1\n2")
    assert same_output("1.0 2", "1 2.00")
    assert not same_output("1\n\n2", "1\n2")
    assert not same_output("one", "two")
    assert not same_output("50000000000000001", "50000000000000000")


def test_a_program_has_limits() -> None:
    assert run_program("while True: pass", limit=0.5).status is None
    assert run_program("b = bytearray(8 << 30)", limit=10).complaint.strip().endswith("MemoryError")
    big = run_program("f = open('big', 'wb')\nwhile True: f.write(b'x' * (1 << 20))", limit=20)
    assert big.status != 0
    assert run_program("import os; print(sorted(os.environ))", limit=10).output.count("TOKEN") == 0
    children = run_program("import subprocess, sys\nprint(subprocess.run(['sleep', '60']))", limit=1)
    assert children.status is None


def test_a_program_sees_none_of_the_users_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    outcome = run_program("import os; print(os.environ.get('HF_TOKEN'), os.getcwd())", limit=10)
    assert outcome.output.startswith("None ")
    assert outcome.output.split()[1] != os.getcwd()


def packed(value: Any) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def test_packed_cases_are_read_without_unpickling(rows: Callable[[str], list[dict[str, Any]]]) -> None:
    text = json.dumps([{"input": "5\n", "output": "10\n", "testtype": "stdin"}])
    for protocol in range(6):
        data = base64.b64encode(zlib.compress(pickle.dumps(text, protocol))).decode()
        if protocol == 0:
            continue  # the text protocol, which nobody uses for this
        assert unpacked_text(data) == text
    row = {**rows("livecodebench_test")[0], "private_test_cases": packed(text)}
    env = llenvs.make("huggingface/livecodebench", data=[row], allow_code_execution=True)
    state, _ = env.reset(options={"task_index": 0})
    assert state.hidden["expected_answer"]["cases"] == [["3\n", "6\n"], ["5\n", "10\n"]]


class Exploit:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be seen",)


@pytest.mark.parametrize("value", [Exploit(), ["a"], ("a", "b"), 7, b"x"])
def test_a_pickle_of_anything_else_is_refused(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"packed test cases are refused: it holds|packed test cases hold 0"):
        unpacked_text(packed(value))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["", "???", base64.b64encode(b"no zlib").decode()])
def test_damaged_cases_are_said(text: str) -> None:
    with pytest.raises(ValueError, match="packed test cases"):
        unpacked_text(text)
