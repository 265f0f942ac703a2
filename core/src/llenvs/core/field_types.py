"""Whether a value fits the declared type of a dataclass field: the check that untrusted records go through."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

Check = Callable[[Any], bool]


def field_checks(cls: type) -> dict[str, tuple[Check, str]]:
    """For each field of the dataclass `cls` a predicate over its values and the type as text.

    The check is shallow where that is enough: a mapping's items are not looked at, nor is what is declared as
    `Any` or as a type variable. A list passes for a tuple (records turn one into the other), an integer for a
    float, and a number is any real number that is no bool, so that numpy's scalars pass.
    """
    try:
        hints = typing.get_type_hints(cls)
    except NameError:  # a record that imports its types under TYPE_CHECKING alone says nothing at runtime
        hints = {}
    fields = dataclasses.fields(cls)
    return {f.name: (_check(hints.get(f.name, Any)), str(f.type)) for f in fields}


def _check(hint: Any) -> Check:
    if hint is Any or isinstance(hint, typing.TypeVar):
        return _anything
    if hint is None or hint is types.NoneType:
        return lambda v: v is None
    if hint is float:
        return lambda v: type(v) is float or (isinstance(v, Real) and not isinstance(v, bool))
    if hint is int:
        return lambda v: isinstance(v, Integral) and not isinstance(v, bool)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        options = [_check(a) for a in args]
        return lambda v: any(option(v) for option in options)
    if origin is typing.Literal:
        return lambda v: isinstance(v, str | int | bool | None) and v in args
    if origin is tuple:
        return _tuple_check(args)
    cls = hint if origin is None else origin
    return (lambda v: isinstance(v, cls)) if isinstance(cls, type) else _anything


def _tuple_check(args: tuple[Any, ...]) -> Check:
    if len(args) == 2 and args[1] is Ellipsis:
        each = _check(args[0])
        return lambda v: isinstance(v, tuple | list) and all(map(each, v))
    checks = [_check(a) for a in args]
    return lambda v: (
        isinstance(v, tuple | list)
        and len(v) == len(checks)
        and all(check(i) for check, i in zip(checks, v, strict=True))
    )


def _anything(value: Any) -> bool:
    return True
