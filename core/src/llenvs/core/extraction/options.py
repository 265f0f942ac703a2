"""Type checks for extractor options, so that a wrong value in a YAML file is one clear error."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from llenvs.core.errors import InvalidOption


def conform(field: str, value: object, hint: Any) -> Any:
    """`value` as the annotation `hint` wants it; a list becomes the tuple the annotation asks for.

    Understands str, int, bool, None, unions, `Literal`, `tuple[X, ...]` and callables.
    Raises `InvalidOption` naming `field` for anything else.
    """
    if not _fits(value, hint):
        problem = "must be one of the valid values" if get_origin(hint) is Literal else "has the wrong type"
        raise InvalidOption(field, value, problem, valid=type_text(hint))
    return tuple(value) if isinstance(value, list) else value


def type_text(hint: Any) -> str:
    """The annotation in words for a message or a table: ``text``, ``list of text``, ``'a' or 'b'``."""
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(repr(value) for value in get_args(hint))
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(each) for each in get_args(hint))
    if origin is tuple:
        return f"list of {type_text(get_args(hint)[0])}"
    if origin is Callable:
        return "function"
    words = {str: "text", int: "whole number", bool: "true or false", type(None): "none"}
    return words.get(hint) or str(getattr(hint, "__name__", hint)).lower()


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(each, get_args(hint)[0]) for each in value)
    if origin is Callable:
        return callable(value)
    if hint is int:  # YAML's `true` is no number, though Python's bool is an int
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
