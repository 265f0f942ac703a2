"""Which objects a deep copy would be tied to."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import pytest

from llenvs_aviary.copying import Shared, deep_size, shared_by_copies


class Holder:
    def __init__(self, tool: Any = None) -> None:
        self.tool, self.items = tool, [1]

    def method(self) -> int:
        return len(self.items)


def closure_over(value: Any) -> Callable[[], Any]:
    def tool() -> Any:
        return value

    return tool


def default_of(value: Any) -> Callable[..., Any]:
    def tool(default: Any = value) -> Any:
        return default

    return tool


class Library(Shared):
    def __init__(self) -> None:
        self.pages: dict[str, str] = {}


@pytest.mark.parametrize(
    "tool",
    [
        None,
        math.sqrt,
        closure_over(3),
        closure_over(("a", frozenset({1}), len)),
        closure_over(closure_over("b")),
        default_of(None),
        functools.partial(int, base=2),
        Holder,
        Holder(),
        Holder().method,
        Library(),
        closure_over(Library()),
    ],
)
def test_independent(tool: Any) -> None:
    assert shared_by_copies(Holder(tool)) is None


@pytest.mark.parametrize(
    ("tool", "held"),
    [
        (closure_over([1]), "list"),
        (closure_over(Holder()), "Holder"),
        (closure_over((1, {2: 3})), "tuple"),
        (closure_over(closure_over({})), "function"),
        (default_of({}), "dict"),
        ([{"deep": closure_over([])}], "list"),
        (functools.partial(closure_over([1])), "list"),
        ([].append, "list"),
    ],
)
def test_tied(tool: Any, held: str) -> None:
    said = shared_by_copies(Holder(tool))
    assert said is not None
    assert said.endswith(f"holds an object of {held}")


def test_a_copied_method_belongs_to_the_copy_and_what_is_shared_stays_one() -> None:
    holder = Holder()
    holder.tool = [holder.method, Library()]
    copied = copy.deepcopy(holder)
    assert copied.tool[0].__self__ is copied
    assert copied.tool[1] is holder.tool[1]


def test_size() -> None:
    assert 100_000 < deep_size(Holder("x" * 100_000)) < 110_000
    library = Library()
    library.pages["a"] = "x" * 100_000
    assert deep_size(Holder(library)) < 5_000
