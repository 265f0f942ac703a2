"""Programs as answers: `program` runs them against the data set's tests."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption
from llenvs_huggingface.programs.run import Outcome, run_program
from llenvs_huggingface.scoring.scorer import RIGHT, Score, Scorer

_CALLS = """
import json, sys
sys.setrecursionlimit(50000)
namespace = {{"__name__": "solution"}}
exec("import math, heapq, bisect, itertools, functools, string, re\\n"
     "from typing import *\\nfrom collections import *\\n"
     "from math import *\\nfrom heapq import *\\nfrom bisect import *\\nfrom itertools import *\\n"
     "from functools import *", namespace)
with open("solution.py", encoding="utf-8") as file:
    exec(compile(file.read(), "solution.py", "exec"), namespace)
with open("calls.json", encoding="utf-8") as file:
    calls = json.load(file)
owner = namespace["Solution"]() if "Solution" in namespace else None
function = getattr(owner, {name!r}) if owner is not None else namespace[{name!r}]
with open("report", "w", encoding="utf-8") as report:
    for arguments in calls:
        json.dump(function(*arguments), report)
        report.write("\\n")
"""


@dataclass(frozen=True)
class ProgramScorer(Scorer):
    """Right when the answer, a Python program, passes all tests; it runs with limits, see `programs.run`.

    `expected` is one of ``{"tests": code}`` (assertions; with ``prefix`` and ``entry_point`` an answer that does
    not define the function continues the prefix) and ``{"cases": [[stdin, stdout], ...]}``, compared line by line,
    numbers by value (with ``function`` the inputs are lines of JSON arguments and the output the JSON of what it
    returns). A program that means to cheat can: it runs in one process with the assertions.
    """

    name: ClassVar[str] = "program"
    time_limit: float = field(default=10.0, metadata={"doc": "seconds for the tests, or for each case"})

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_limit) and self.time_limit > 0):
            raise InvalidOption("scoring.time_limit", self.time_limit, "must be a positive number of seconds")

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        if "\0" in answer:
            return Score(0.0, error="the program holds a null character")
        if "tests" in expected:
            return self._assertions(answer, expected)
        if expected.get("function"):
            return self._calls(answer, expected["function"], expected["cases"])
        for number, (given, wanted) in enumerate(expected["cases"]):
            outcome = run_program(answer, stdin=given, limit=self.time_limit)
            if outcome.status != 0:
                return self._failed(outcome, f"case {number}")
            if not same_output(outcome.output, wanted):
                return Score(0.0, error=f"case {number}: another output than expected")
        return RIGHT

    def check(self, expected: Any) -> str | None:
        """Tests or cases."""
        if isinstance(expected, Mapping) and ("tests" in expected or expected.get("cases")):
            return None
        return "program needs tests (the presets humaneval, mbpp and livecodebench have them)"

    def _assertions(self, answer: str, expected: Mapping[str, Any]) -> Score:
        entry = expected.get("entry_point")
        whole = entry is None or f"def {entry}(" in answer
        # what stands before the function (imports, other functions) is kept: a complete answer may rely on it
        code = (
            f"{_before(expected.get('prefix', ''), entry)}\n{answer}" if whole else f"{expected['prefix']}{answer}"
        )
        mark = secrets.token_hex(16)
        ending = f'\nwith open("report", "w") as _report:\n    _report.write("{mark}")\n'
        outcome = run_program(f"{code}\n\n{expected['tests']}{ending}", limit=self.time_limit)
        if outcome.status == 0 and outcome.report == mark:
            return RIGHT
        return self._failed(outcome, "the tests")

    def _calls(self, answer: str, name: str, cases: Sequence[Sequence[str]]) -> Score:
        try:
            calls = [[json.loads(line) for line in given.split("\n") if line.strip()] for given, _ in cases]
            wanted = [json.loads(output) for _, output in cases]
        except json.JSONDecodeError as error:
            return Score(0.0, error=f"the data set's own cases are no JSON: {error}")
        files = {"solution.py": answer, "calls.json": json.dumps(calls)}
        limit = self.time_limit * max(1, min(len(cases), 6))
        outcome = run_program(_CALLS.format(name=name), files=files, limit=limit)
        if outcome.status != 0:
            return self._failed(outcome, "the calls")
        try:
            returned = [json.loads(line) for line in outcome.report.splitlines()]
        except json.JSONDecodeError:
            return Score(0.0, error="the program wrote into the report of its results")
        for number, value in enumerate(wanted):
            if number >= len(returned) or returned[number] != value:
                return Score(0.0, error=f"case {number}: another result than expected")
        return RIGHT

    def _failed(self, outcome: Outcome, where: str) -> Score:
        if outcome.status is None:
            return Score(0.0, error=f"{where}: longer than {self.time_limit:g} s")
        last = outcome.complaint.strip().splitlines()[-1:] or [f"exit status {outcome.status}"]
        return Score(0.0, error=f"{where}: {last[0][:200]}")


def _before(prefix: str, entry: str | None) -> str:
    return prefix.partition(f"def {entry}(")[0] if entry is not None else prefix


def same_output(given: str, wanted: str) -> bool:
    """Whether two outputs are the same: line by line without white space at the ends, or number by number.

    The comparison of LiveCodeBench.
    """
    ours = [line.strip() for line in given.strip().split("\n")]
    theirs = [line.strip() for line in wanted.strip().split("\n")]
    if len(ours) != len(theirs):
        return False
    return all(a == b or _same_numbers(a, b) for a, b in zip(ours, theirs, strict=True))


def _same_numbers(a: str, b: str) -> bool:
    try:
        return [Decimal(each) for each in a.split()] == [Decimal(each) for each in b.split()]
    except InvalidOperation:
        return False
