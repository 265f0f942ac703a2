"""The child process that holds math-verify, see `verifiers`.

It loads math-verify once; comparisons run in a fork of it, killed at the limit and replaced at the next,
so that a hostile answer costs no second import of sympy.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
from collections.abc import Callable
from typing import Any

from llenvs.core.simulator.confinement import confine

Compare = Callable[[str, str], bool]
_WARMING = (
    (r"\frac{1}{2}", "x+0.5"),
    (r"-3, 3", r"\{3,-3\}"),
    (r"\left( 2, \frac{\pi}{2} \right)", r"(2,\frac{3\pi}{4})"),
    (r"x^2+4x+4", r"(x+2)^2-1"),
    (r"[2,5) \cup (7, \infty)", r"(-\infty, 2]"),
    (r"5\sqrt{2}", r"\sqrt[3]{50}+2 \cdot 3"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 & x \end{pmatrix}"),
    (r"y = 2x + 3", r"x \le 4"),
    (r"\sin^2 x + \log_2 8", r"e^{-x} + |x| + n!"),
    (r"1 + 2i", r"\binom{5}{2} \times 10^{3}"),
)
COMPARISONS = 2000
"""Comparisons after which a fork is replaced, since what sympy caches grows."""
GRACE = 1.0
"""Seconds after the limit at which a fork ends itself, should this process not have ended it."""


def verifier() -> Callable[[dict[str, Any], bytes], tuple[Any, bytes]]:
    """A handler of ``{"expected", "answer", "seconds"}``; called by `llenvs.core.simulator.engine_child`.

    Its answers are "equal", "different", "timeout", "died" and ``"error: what math-verify raised"``.
    """
    compare = _loaded()
    fork: Fork | None = None

    def handle(request: dict[str, Any], _: bytes) -> tuple[Any, bytes]:
        nonlocal fork
        if fork is None:
            fork = Fork(compare)
        verdict = fork.ask(request["expected"], request["answer"], request["seconds"])
        if verdict in ("timeout", "died") or fork.left == 0:
            fork.end()
            fork = None
        return verdict, b""

    return handle


def _loaded() -> Compare:
    """The comparison of two LaTeX answers without delimiters.

    math-verify runs without its own time limit, a signal that works in a main thread alone and would cancel other
    alarms. Only its LaTeX parser is used: the other one hands text to sympy's ``parse_expr``, which evaluates it.
    """
    logging.disable(logging.CRITICAL)
    from math_verify import LatexExtractionConfig, parse, verify

    def parsed(answer: str) -> Any:
        return parse(f"${answer}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None)

    def compare(expected: str, answer: str) -> bool:
        return bool(verify(parsed(expected), parsed(answer), timeout_seconds=None))

    for (
        expected,
        answer,
    ) in _WARMING:  # the first uses load the rest and fill the parser's tables, which forks share
        compare(expected, answer)
    return compare


class Fork:
    """A copy of this process that compares, one pair at a time, until one takes too long."""

    def __init__(self, compare: Compare) -> None:
        asked, self._to = os.pipe()
        self._from, answered = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _only_open(asked, answered)
                confine()
                _compare_all(compare, asked, answered)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answered)
        self.left = COMPARISONS

    def ask(self, expected: str, answer: str, seconds: float) -> str:
        """The verdict; "timeout" and "died" end the fork."""
        self.left -= 1
        question = memoryview(json.dumps([expected, answer, seconds]).encode() + b"\n")
        try:
            while question:
                question = question[os.write(self._to, question) :]
        except BrokenPipeError:
            return "died"
        ready, _, _ = select.select([self._from], [], [], seconds)
        return (os.read(self._from, 4096).decode() or "died") if ready else "timeout"

    def end(self) -> None:
        """Kill it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._to)
        os.close(self._from)


def _only_open(asked: int, answered: int) -> None:
    """Close what belongs to the parent, or its own parent would not see it die."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    low, high = sorted((asked, answered))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, 4096)


def _compare_all(compare: Compare, asked: int, answered: int) -> None:
    with open(asked, "rb") as questions:
        for question in questions:
            expected, answer, seconds = json.loads(question)
            signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)  # whose default ends the process
            try:
                verdict = "equal" if compare(expected, answer) else "different"
            except BaseException as error:  # noqa: BLE001 - math-verify may raise anything on a model's text
                verdict = f"error: {type(error).__name__}: {error}"[:500]
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.write(answered, verdict.encode(errors="replace"))
