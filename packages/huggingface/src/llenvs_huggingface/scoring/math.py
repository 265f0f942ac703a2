"""Mathematical answers: `math`, numbers and texts at once and everything else by math-verify."""

from __future__ import annotations

import importlib.util
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption, NotInstalled
from llenvs.core.extraction import NumericExtractor
from llenvs_huggingface.scoring.latex import bare_answer, is_prose, last_formula, spelling, words
from llenvs_huggingface.scoring.number import Number, whole_number
from llenvs_huggingface.scoring.scorer import RIGHT, WRONG, Score, Scorer
from llenvs_huggingface.scoring.verifiers import VERIFIERS

MAX_CHARACTERS = 4000
"""A longer answer that is not the expected text itself is wrong, unread."""
_ROUNDING = Fraction(1, 10**5)  # math-verify rounds to six places; from here on no rounding makes two numbers one


@dataclass(frozen=True)
class MathScorer(Scorer):
    r"""Right when the answer means the same as the expected LaTeX: ``3/4``, ``0.75``, ``\boxed{\frac{3}{4}}``.

    First without math-verify: the same text in another spelling, the same or a different number, the same or
    different words. What that leaves open math-verify decides, in a process that is killed at the limit. An
    answer that takes too long, or makes the worker fail, is wrong, and `Score.error` says why.
    """

    name: ClassVar[str] = "math"
    time_limit: float = field(default=5.0, metadata={"doc": "seconds that math-verify may take for one answer"})

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_limit) and self.time_limit > 0):
            raise InvalidOption("scoring.time_limit", self.time_limit, "must be a positive number of seconds")
        if importlib.util.find_spec("math_verify") is None:
            raise NotInstalled("math-verify, which the scorer 'math' needs,", "huggingface")
        VERIFIERS.acquire()
        object.__setattr__(self, "_release", weakref.finalize(self, VERIFIERS.release))

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        if not answer.strip():
            return WRONG
        if answer == expected:
            return RIGHT
        if len(answer) > MAX_CHARACTERS:
            return Score(0.0, error=f"not compared: the answer has {len(answer):,} characters")
        given, right = bare_answer(answer), bare_answer(expected)
        if is_prose(given) and not is_prose(right):
            given = _said_in(given, right)
        quick = quick_verdict(given, right)
        if quick is not None:
            return RIGHT if quick else WRONG
        verdict = VERIFIERS.verdict(right, given, self.time_limit)
        if verdict == "timeout":
            return Score(0.0, error=f"comparing took longer than {self.time_limit:g} s")
        if verdict not in ("equal", "different"):
            return Score(0.0, error=f"math-verify failed on this answer: {verdict.removeprefix('error: ')}")
        return RIGHT if verdict == "equal" else WRONG

    def close(self) -> None:
        """Let the workers go, if this is the last to use them."""
        self._release()  # type: ignore[attr-defined]


def _said_in(sentence: str, right: str) -> str:
    """What a sentence gives as its answer: its last formula, or its last number where a number is expected."""
    formula = last_formula(sentence)
    if formula is not None:
        return formula
    if whole_number(right) is not None:
        return NumericExtractor(before=()).extract(sentence) or sentence
    return sentence


def quick_verdict(given: str, right: str) -> bool | None:
    """Whether two bare answers are equal, where that can be told without algebra; else None."""
    if not given:
        return False
    if spelling(given) == spelling(right):
        return True
    one, other = whole_number(given), whole_number(right)
    if one is not None and other is not None:
        return _same_number(one, other)
    said, wanted = words(given), words(right)
    if said is not None and wanted is not None:
        return said == wanted
    return None


def _same_number(one: Number, other: Number) -> bool | None:
    if one.value == other.value:
        return True
    if one.percent or other.percent:
        return None  # math-verify takes 28% for 28 and for 0.28
    return False if abs(one.value - other.value) > _ROUNDING else None
