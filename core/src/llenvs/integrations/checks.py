"""What people and data sets hand to the hooks of trainers, checked where it is handed over."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from llenvs.core.errors import InvalidOption


def whole(field: str, value: Any, *, at_least: int) -> int:
    """`value` as an int (numpy's are taken too).

    Args:
        field: name of the argument, for the error.
        value: as given.
        at_least: the smallest that is allowed.

    Raises:
        InvalidOption: it is no whole number, or less.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < at_least:
        raise InvalidOption(field, value, f"must be a whole number, at least {at_least}")
    return number


def finite(field: str, value: Any, valid: str) -> float:
    """`value` as a float.

    Args:
        field: name of the argument, for the error.
        value: as given.
        valid: what else is allowed in its place, for the error.

    Raises:
        InvalidOption: it is no finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidOption(field, value, "is no finite number", valid=valid)
    return float(value)


def seconds(field: str, value: Any) -> float | None:
    """`value` as seconds, more than 0; None for no limit.

    Raises:
        InvalidOption: it is neither.
    """
    if value is None:
        return None
    number = finite(field, value, "seconds, more than 0, or None")
    if number <= 0:
        raise InvalidOption(field, value, "must be positive, or None")
    return number


def names(field: str, value: Iterable[str]) -> tuple[str, ...]:
    """`value` as a tuple of texts; one text alone is refused, since its letters would be taken for names.

    Raises:
        InvalidOption: it is something else.
    """
    listed = () if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if isinstance(value, str) or not isinstance(value, Iterable) or not all(isinstance(n, str) for n in listed):
        raise InvalidOption(field, value, "must be a list of texts", valid='["...", "..."]')
    return listed


def task_index(value: Any) -> int:
    """The index of a task in a row: an int, its decimal digits, or a float without a fraction (as columns with
    gaps have it). Whether there is such a task, the environment says.

    Raises:
        InvalidOption: it is something else, which must not be rounded to another task.
    """
    if type(value) is int:
        return value
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise InvalidOption("task_index", value, "is no whole number", valid="0 to the number of tasks - 1")
