"""Numbers as text, read exactly: the scorers `numeric` and `numeric_tolerance`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction import NumericExtractor
from llenvs.core.extraction.cleaners import clean_until_stable
from llenvs.core.extraction.number import NUMBER, plain_number
from llenvs_huggingface.scoring.scorer import RIGHT, WRONG, Score, Scorer

MAX_DIGITS = 4000
"""Digits of a number that is still read (Python refuses more than 4300 by itself), and its largest exponent."""
_LONGEST = 20_000  # characters of a text in which a number is looked for

WRAPPINGS = ("whitespace", "markdown", "latex", "boxed", "latex_text", "quotes", "punctuation")
"""Cleaners that take off what may stand around an answer."""

_NAME = r"(?:\\?[A-Za-z][A-Za-z_]{0,15}\s?(?:=|\\approx|≈)\s?)?"
_LATEX_SPACE = r"\\[,;:! ]|~"
_UNIT = (
    rf"(?:\s|{_LATEX_SPACE}|\^?\{{?\\circ\}}?|\\(?:text|mathrm|mbox|textrm)\{{[^{{}}\d]{{0,60}}\}}"
    r"|\\?[%$°€£¥]|[A-Za-zµ²³][A-Za-zµ²³.-]{1,30}(?:/[A-Za-z]{1,20}[²³]?)?(?![A-Za-z(]))"
)
_WHOLE = re.compile(rf"{_NAME}(?:{NUMBER})(?:{_UNIT}){{0,12}}")
_LAST = NumericExtractor(before=(), keep_percent=True)


class Number(NamedTuple):
    """A number: its exact value, without regard to a per cent sign, and whether there was one."""

    value: Fraction
    percent: bool = False


def whole_number(text: str) -> Number | None:
    """The number that `text` is from end to end, wrappings and a unit aside; None where it is anything else."""
    if len(text) > _LONGEST:
        return None
    text = clean_until_stable(text, WRAPPINGS)
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    value = exact_value(plain_number(match))
    return None if value is None else Number(value, match["percent"] is not None)


def last_number(text: str) -> Number | None:
    """`whole_number`, or else the last number that stands in `text`; None without one."""
    whole = whole_number(text)
    if whole is not None:
        return whole
    found = _LAST.extract(text[-_LONGEST:])
    if found is None:
        return None
    value = exact_value(found.removesuffix("%"))
    return None if value is None else Number(value, found.endswith("%"))


def exact_value(plain: str) -> Fraction | None:
    """The value of a number as `plain_number` writes it; None for one with too many digits, or x/0."""
    negative = plain.startswith("-")
    body = plain.removeprefix("-")
    try:
        if "^" in body:
            base, _, exponent = body.partition("^")
            value = _power(base, exponent)
        elif "/" in body:
            over, _, under = body.partition("/")
            value = _decimal(over) / _decimal(under)
        else:
            value = _decimal(body)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return -value if negative else value


def _decimal(text: str) -> Fraction:
    mantissa, _, exponent = text.partition("e")
    if len(mantissa) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent or "0")) > MAX_DIGITS:
        raise ValueError("too many digits")
    return Fraction(text)


def _power(base: str, exponent: str) -> Fraction:
    if len(exponent) > 6 or len(base) * abs(int(exponent)) > MAX_DIGITS:
        raise ValueError("too many digits")
    return _decimal(base) ** int(exponent)


@dataclass(frozen=True)
class NumericScorer(Scorer):
    """Right when the answer's number is exactly the expected one: ``2,300``, ``$2300.00`` and ``2300 pages`` are
    2300.

    Currency signs, thousands separators, units, a per cent sign and a trailing full stop do not count; ``a/b``,
    decimals and powers are compared as fractions. The answer's number is the whole of it, or else the last in it.
    An expected value that is no number ("None" in GSM-Plus) is compared as text.
    """

    name: ClassVar[str] = "numeric"

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        right = whole_number(expected)
        if right is None:
            return RIGHT if answer.strip().casefold() == expected.strip().casefold() else WRONG
        given = last_number(answer)
        return RIGHT if given is not None and given.value == right.value else WRONG


@dataclass(frozen=True)
class NumericToleranceScorer(Scorer):
    """Right when ``|answer - expected| <= max(relative * |expected|, absolute)``, in exact arithmetic."""

    name: ClassVar[str] = "numeric_tolerance"
    relative: float = field(default=1e-6, metadata={"doc": "relative tolerance, at least 0"})
    absolute: float = field(default=0.0, metadata={"doc": "absolute tolerance, at least 0"})

    def __post_init__(self) -> None:
        for key in ("relative", "absolute"):
            value = getattr(self, key)
            if not math.isfinite(value) or value < 0:
                raise InvalidOption(f"scoring.{key}", value, "must be a finite number, 0 or more")

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        right = whole_number(expected)
        given = last_number(answer)
        if right is None or given is None:
            return WRONG
        allowed = max(Fraction(self.relative) * abs(right.value), Fraction(self.absolute))
        return RIGHT if abs(given.value - right.value) <= allowed else WRONG

    def check(self, expected: Any) -> str | None:
        """An expected value must be a number."""
        problem = super().check(expected)
        if problem is None and whole_number(expected) is None:
            return f"{self.name} needs a number, not {expected[:60]!r}"
        return problem
