"""What an answer is worth: the upstream's graders, where they can be killed."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from llenvs.core.encoding import dumps
from llenvs_gem.program import run_program
from llenvs_gem.upstream import module
from llenvs_gem.workers import WORKERS, WorkerStopped

NO_CODE = -0.1
"""The upstream's reward for a response without a block of code."""


class Verdict(NamedTuple):
    """A judgement.

    Attributes:
        reward: the upstream's own value.
        correct: whether the answer is right.
        error: why the answer could not be judged (too slow, the grader raised), else None.
    """

    reward: float
    correct: bool
    error: str | None = None


class BadTruth(ValueError):
    """An item whose ground truth has not the form that its grader needs."""


class Judge(ABC):
    """Judges answers to the items of one environment. Safe under threads."""

    def __init__(self, environment: str) -> None:
        self.environment = environment

    @abstractmethod
    def judge(self, answer: str | None, truth: Any) -> Verdict:
        """What `answer` (None: the response holds none) is worth for an item with the ground truth `truth`.

        Raises:
            UpstreamFailed: nothing that the answer could be blamed for.
            BadTruth: nor this.
        """

    def check(self, truth: Any) -> None:
        """Raise `BadTruth` if answers cannot be judged by `truth`."""
        right_answers(truth)

    def close(self) -> None:
        """Free what it holds. Called once."""


class QAJudge(Judge):
    """Exact match after lower-casing and leaving out articles and punctuation (qa and logic)."""

    def judge(self, answer: str | None, truth: Any) -> Verdict:
        """See `Judge`; in this process, as it is a comparison of texts."""
        if answer is None:
            return Verdict(0.0, False)
        correct = bool(module("gem.utils.qa_em").em_check(answer, right_answers(truth)))
        return Verdict(float(correct), correct)


class MathJudge(Judge):
    """The upstream's three graders in turn, in a worker process."""

    def __init__(self, environment: str, time_limit: float) -> None:
        super().__init__(environment)
        self._time_limit = time_limit
        WORKERS.acquire()

    def judge(self, answer: str | None, truth: Any) -> Verdict:
        """See `Judge`; an answer that cannot be graded in time is wrong, as in the upstream."""
        truths = right_answers(truth)
        if answer is None:
            return Verdict(0.0, False)
        request = {"do": "grade", "answer": answer, "truths": truths}
        try:
            reply, _ = WORKERS.request(
                request, limit=self._time_limit, doing="grading an answer", environment=self.environment
            )
        except WorkerStopped as stopped:
            return Verdict(0.0, False, f"not graded: {stopped}")
        return Verdict(float(reply["correct"]), bool(reply["correct"]))

    def close(self) -> None:
        """Let the workers go."""
        WORKERS.release()


class ReasoningJudge(Judge):
    """The scorer of a data set of reasoning_gym, in a worker process."""

    def __init__(self, environment: str, recipe: Mapping[str, Any], time_limit: float) -> None:
        super().__init__(environment)
        self._recipe, self._time_limit = dict(recipe), time_limit
        WORKERS.acquire()

    def check(self, truth: Any) -> None:
        """Any item of the data set will do."""

    def judge(self, answer: str | None, truth: Any) -> Verdict:
        """See `Judge`; `truth` is the item. An answer at which the scorer raises or hangs is worth nothing."""
        request = {"do": "score", **self._recipe, "answer": answer}
        payload = dumps(truth).encode()
        try:
            reply, _ = WORKERS.request(
                request, payload, limit=self._time_limit, doing="scoring an answer", environment=self.environment
            )
        except WorkerStopped as stopped:
            return Verdict(0.0, False, f"not scored: {stopped}")
        if "raised" in reply:
            return Verdict(0.0, False, f"the upstream's scorer raised {reply['raised']}")
        score = reply["score"]
        if not math.isfinite(score):
            return Verdict(0.0, False, f"the upstream's scorer returned {score}")
        return Verdict(score, score == 1.0)

    def close(self) -> None:
        """Let the workers go."""
        WORKERS.release()


class CodeJudge(Judge):
    """Runs a program on the tests of a problem; right when every output is, blanks at both ends aside.

    Args:
        environment: ``gem/id``.
        time_limit: seconds for each test.
        memory_limit: bytes for each test.
        max_tests: of more tests, those with the longest inputs are taken, as in the upstream.
        max_workers: tests at once.
    """

    def __init__(
        self, environment: str, *, time_limit: float, memory_limit: int, max_tests: int, max_workers: int
    ) -> None:
        super().__init__(environment)
        self._limits = time_limit, memory_limit
        self._max_tests, self._max_workers = max_tests, max_workers

    def check(self, truth: Any) -> None:
        """See `Judge`."""
        read_tests(truth)

    def judge(self, answer: str | None, truth: Any) -> Verdict:
        """See `Judge`."""
        tests = read_tests(truth)
        if answer is None:
            return Verdict(NO_CODE, False)
        if len(tests) > self._max_tests:
            tests = sorted(tests, key=lambda test: test.size, reverse=True)[: self._max_tests]
        with ThreadPoolExecutor(self._max_workers, thread_name_prefix="llenvs-gem-code") as pool:
            waiting = {pool.submit(self._passes, answer, test) for test in tests}
            correct = _all_true(waiting)
        return Verdict(float(correct), correct)

    def _passes(self, code: str, test: ProgramTest) -> bool:
        time_limit, memory_limit = self._limits
        result = run_program(code, test.input, time_limit=time_limit, memory_limit=memory_limit)
        return result.ok and result.stdout.strip() == test.output.strip()


class ProgramTest(NamedTuple):
    """What a program reads and must write; `size` is the length of the input as the data set holds it."""

    input: str
    output: str
    size: int


def read_tests(tests: Any) -> list[ProgramTest]:
    """The tests of a problem: ``{"inputs": [...], "outputs": [...]}``, or JSON text of it.

    An input or output that is a list is its items, one a line.

    Raises:
        BadTruth: it is something else.
    """
    if isinstance(tests, str):
        try:
            tests = json.loads(tests)
        except ValueError as error:
            raise BadTruth(f"the tests are no JSON: {error}") from None
    match tests:
        case {"inputs": [*inputs], "outputs": [*outputs]} if inputs and len(inputs) == len(outputs):
            return [
                ProgramTest(_lines(given), _lines(wanted), len(given))
                for given, wanted in zip(inputs, outputs, strict=True)
            ]
    raise BadTruth('tests must be {"inputs": [...], "outputs": [...]} with as many of each, at least one')


def _lines(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(str, value))
    raise BadTruth(f"the input or output of a test must be a text or a list, is {type(value).__name__}")


def _all_true(waiting: set[Future[bool]]) -> bool:
    """Whether all are; what has not begun is given up at the first that is not."""
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        if not all(each.result() for each in done):
            for each in waiting:
                each.cancel()
            return False
    return True


def right_answers(truth: Any) -> list[str]:
    """The right answers as texts: one (a text or a number), or a list of them.

    Raises:
        BadTruth: it is something else.
    """
    if isinstance(truth, str | int | float):
        return [str(truth)]
    if isinstance(truth, Sequence):
        return [str(each) for each in truth]
    raise BadTruth(f"the answer must be a text, a number or a list of them, is {type(truth).__name__}")
