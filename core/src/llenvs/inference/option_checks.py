"""Checks of options that several backends take."""

from __future__ import annotations

from collections.abc import Mapping

from llenvs.core.errors import InvalidOption


def check_timeout(timeout: object) -> None:
    """Refuse what is no limit of time.

    Raises:
        InvalidOption: `timeout` is neither None nor a positive number of seconds.
    """
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and timeout > 0):  # type: ignore[operator]  # (NaN is refused too)
        raise InvalidOption("timeout", timeout, "must be a positive number of seconds, or null for no limit")


def check_mappings(**options: object) -> None:
    """Refuse options that are neither None nor mappings.

    Raises:
        InvalidOption: naming the first one.
    """
    for name, value in options.items():
        if not isinstance(value, Mapping | None):
            raise InvalidOption(name, value, "must be a mapping")


def check_texts(**options: object) -> None:
    """Refuse options that are neither None nor texts.

    Raises:
        InvalidOption: naming the first one.
    """
    for name, value in options.items():
        if not isinstance(value, str | None):
            raise InvalidOption(name, type(value).__name__, "must be a text")  # not the value: it may be a key


def check_counts(**options: object) -> None:
    """Refuse options that are neither None nor whole numbers of at least 1.

    Raises:
        InvalidOption: naming the first one.
    """
    for name, value in options.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InvalidOption(name, value, "must be a whole number of at least 1")
