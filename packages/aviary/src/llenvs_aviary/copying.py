"""Whether a deep copy of an environment object is independent of the original, and how large one is."""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

_SHARED = (type, ModuleType, CodeType, Enum)  # one for all, in a copy too
_IMMUTABLE = (str, bytes, int, float, complex, bool, type(None))
_FUNCTIONS = (FunctionType, BuiltinFunctionType)  # which a deep copy takes as they are
_MOST_LOOKED_AT = 20_000  # objects whose size is asked for; more would cost more than the copy


class Shared:
    """Base of what the copies of an environment object share on purpose: no episode changes it for another."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


def shared_by_copies(root: Any) -> str | None:
    """What a deep copy of `root` would share with it though it can change, in words; None when nothing.

    A deep copy takes functions as they are. One that was defined inside a method holds its variables, such as
    the environment itself, in its closure: called in the copy it would change the original.
    """
    for each in _reachable(root):
        if isinstance(each, _FUNCTIONS):
            for held in _held(each):
                if not _is_constant(held, set()):
                    return f"the function {each.__qualname__} holds an object of {type(held).__name__}"
    return None


def copied_with_schemas_shared(env: Any) -> Any:
    """A deep copy, but for the schemas of the tools, which nothing changes: they are most of a small object."""
    return copy.deepcopy(env, {id(tool.info): tool.info for tool in env.tools})


def deep_size(root: Any) -> int:
    """Bytes of `root` and what belongs to it, roughly; of the largest ones a part."""
    return sum(sys.getsizeof(each) for each in islice(_reachable(root), _MOST_LOOKED_AT))


def _reachable(root: Any) -> Iterator[Any]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, (*_SHARED, Shared)):
            continue
        seen.add(id(each))
        yield each
        # through a function lies its whole module; what it holds itself is looked at by `shared_by_copies`
        if not isinstance(each, (*_IMMUTABLE, *_FUNCTIONS)):
            waiting.extend(gc.get_referents(each))


def _held(function: FunctionType | BuiltinFunctionType) -> Iterator[Any]:
    if isinstance(function, BuiltinFunctionType):
        yield function.__self__  # a module, or the object whose method it is, such as a list's append
        return
    for cell in function.__closure__ or ():
        yield from _content(cell)
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()


def _content(cell: CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return


def _is_constant(value: Any, seen: set[int]) -> bool:
    if isinstance(value, (*_IMMUTABLE, *_SHARED, Shared)) or id(value) in seen:
        return True
    seen.add(id(value))
    if isinstance(value, tuple | frozenset):
        return all(_is_constant(item, seen) for item in value)
    if isinstance(value, _FUNCTIONS):
        return all(_is_constant(item, seen) for item in _held(value))
    return False
