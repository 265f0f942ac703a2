"""Programs of a model: what they can do, and that it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llenvs import Action, Environment
from llenvs.core.errors import UpstreamFailed
from llenvs_gem.judges import BadTruth, ProgramTest, read_tests
from llenvs_gem.program import OUTPUT_LIMIT, run_program

Env = Callable[..., Environment[Any]]


def test_what_it_reads_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_program("import sys\nprint(input().upper())\nprint('ä', file=sys.stderr)", "grün\n")
    assert (result.ok, result.stdout, result.stderr, result.timed_out) == (True, "GRÜN\n", "ä", False)
    assert list(tmp_path.iterdir()) == []


def test_its_folder_is_its_own_and_goes() -> None:
    result = run_program("import os\nopen('x', 'w').write('1')\nprint(os.getcwd(), os.listdir())", time_limit=60)
    folder, _, names = result.stdout.strip().partition(" ")
    assert names == "['x']"
    assert not os.path.exists(folder)


def test_the_environment_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    result = run_program("import os\nprint('OPENAI_API_KEY' in os.environ)")
    assert result.stdout == "False\n"


def test_long_programs_and_programs_with_anything_in_them() -> None:
    assert run_program("x = 1\n" * 30_000 + "print(x)", time_limit=60).stdout == "1\n"
    assert not run_program("print('\0')", time_limit=60).ok
    assert run_program("print('\ud800')", time_limit=60).stdout == "?\n"


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_limits_hold() -> None:
    memory = run_program("x = bytearray(1 << 30)", memory_limit=256 << 20, time_limit=60)
    assert (memory.ok, "MemoryError" in memory.stderr) == (False, True)
    written = run_program(f"import sys\nsys.stdout.write('x' * {OUTPUT_LIMIT + 10})", time_limit=60)
    assert not written.ok
    assert len(written.stdout) == OUTPUT_LIMIT
    hanging = run_program("while True: pass", time_limit=0.5)
    assert (hanging.ok, hanging.timed_out) == (False, True)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
def test_what_it_started_is_killed_with_it() -> None:
    marker = f"llenvs-gem-test-{os.getpid()}"
    child = f"[sys.executable, '-c', 'import time; time.sleep(90)', '{marker}']"
    code = f"import subprocess, sys\nsubprocess.Popen({child})"
    assert run_program(code, time_limit=60).ok
    for _ in range(100):
        shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if marker not in shown:
            return
        time.sleep(0.05)
    pytest.fail("a process that the program started lives on")


def test_tests_of_a_problem() -> None:
    assert read_tests('{"inputs": ["1"], "outputs": [["a", 2]]}') == [ProgramTest("1", "a\n2", 1)]
    for wrong in (
        "{",
        "[]",
        {"inputs": [], "outputs": []},
        {"inputs": ["1"], "outputs": []},
        {"inputs": [1], "outputs": [2]},
    ):
        with pytest.raises(BadTruth):
            read_tests(wrong)


def test_of_many_tests_those_with_the_longest_inputs_count(env: Env) -> None:
    inputs = ["1", "1" * 5, "1" * 9]
    outputs = ["wrong on purpose", "5", "9"]
    rows = [{"problem": "How long is the line?", "tests": {"inputs": inputs, "outputs": outputs}}]
    program = Action("```python\nprint(len(input()))\n```")
    for most, reward in ((2, 1.0), (3, 0.0)):
        code = env("eval:CodeContest", dataset=rows, max_tests=most, time_limit=60)
        state, _ = code.reset()
        assert code.step(state, program).rewards.total == reward


def test_a_problem_whose_tests_are_none_is_an_error(env: Env) -> None:
    code = env("code:Taco8k", dataset=[{"problem": "?", "tests": "nothing"}])
    with pytest.raises(UpstreamFailed, match=r"reading item 0: the tests are no JSON"):
        code.reset()
