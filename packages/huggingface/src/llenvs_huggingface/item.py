"""What a row means: a question, what is expected, and what goes with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
"""A row of a data set: column name -> value, plain data."""


@dataclass(frozen=True, slots=True)
class Item:
    """One row, understood.

    Attributes:
        question: the question's text.
        expected: what a right answer is: a text, a list of texts, or a mapping for scorers that need more. For
            multiple choice it is the number of the right option, counted from 0 in `choices`.
        choices: the options of a multiple-choice question, in the row's own order; None for any other.
        context: what is to be read before the question; "" for nothing.
    """

    question: str
    expected: Any
    choices: tuple[str, ...] | None = None
    context: str = ""


Reader = Callable[[Row], Item]
"""Understands a row. Raises KeyError, TypeError, ValueError or IndexError for a row that it cannot understand."""


def text_of(value: Any) -> str:
    """A cell as text: a whole float without its ``.0``, None as ""."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return value if isinstance(value, str) else str(value)
