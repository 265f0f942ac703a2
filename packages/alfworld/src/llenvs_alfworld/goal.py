"""How much of a game's goal is reached: its conditions, counted.

The goal of a game is a PDDL formula: a conjunction of ``exists`` over conjunctions of atoms. Atoms about what
never changes (types, what can be heated) say which objects are meant; the others are the conditions. With one
``exists`` each of these counts, for the choice of objects that fulfils most of them. With several, each counts as
a whole, as in "the lamp is lit where I am, and I hold the book".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

Atoms = Mapping[str, Collection[tuple[str, ...]]]
"""Arguments of the atoms of each predicate."""

Wanted = tuple[int, bool]
"""A variable of the planner, and whether its atom is to be true; the variable is -1 for an atom that never is."""


class OtherForm(Exception):
    """The goal is no conjunction of ``exists`` over conjunctions."""


@dataclass(frozen=True, slots=True)
class GoalConditions:
    """The conditions of a goal.

    Attributes:
        alternatives: for each part of the goal, the conditions under each choice of objects.
        whole: whether a part counts only as a whole.
    """

    alternatives: tuple[tuple[tuple[Wanted, ...], ...], ...]
    whole: bool

    @property
    def total(self) -> int:
        """Number of conditions."""
        return len(self.alternatives) if self.whole else max((len(c) for c in self.alternatives[0]), default=0)

    def share(self, is_true: Callable[[int], bool]) -> float:
        """The share of the conditions that hold, from 0 to 1, where `is_true` tells what a variable says."""
        if self.whole:
            reached = sum(
                any(all(_holds(w, is_true) for w in choice) for choice in part) for part in self.alternatives
            )
        else:
            reached = max((sum(_holds(w, is_true) for w in choice) for choice in self.alternatives[0]), default=0)
        return reached / self.total if self.total else 0.0


def _holds(wanted: Wanted, is_true: Callable[[int], bool]) -> bool:
    variable, value = wanted
    return (variable >= 0 and is_true(variable)) is value


def read_goal(
    problem: str, constant: Atoms, index: Mapping[str, int], objects: Mapping[str, Collection[str]]
) -> GoalConditions | None:
    """The conditions of the goal of a PDDL problem; None for a goal of another form.

    Args:
        problem: the problem's text.
        constant: atoms that are true throughout, by predicates that never change.
        index: variables of the planner by their atoms, such as ``holds(agent1, mug_1)``.
        objects: names of the objects of each type; those of all types under ``object``.
    """
    fluents: dict[str, set[tuple[str, ...]]] = {}
    for atom in index:
        name, _, arguments = atom.partition("(")
        fluents.setdefault(name, set()).add(tuple(filter(None, arguments.rstrip(")").split(", "))))
    try:
        parts = [_Part.read(part) for part in _members(_section(_read(problem), ":goal"))]
        whole = len(parts) > 1
        choices = [part.choices(constant, fluents, objects, index, only_possible=whole) for part in parts]
    except OtherForm:
        return None
    return GoalConditions(tuple(choices), whole) if choices and all(choices) else None


@dataclass(slots=True)
class _Part:
    """An ``exists``: variables with their types, atoms (with whether they are to hold), and what must differ."""

    variables: dict[str, str] = field(default_factory=dict)
    atoms: list[tuple[str, tuple[str, ...], bool]] = field(default_factory=list)
    differing: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def read(cls, formula: Any) -> _Part:
        part = cls()
        part._add(formula, True)
        return part

    def _add(self, formula: Any, value: bool) -> None:
        match formula:
            case ["exists", [*variables], inner] if value:
                self.variables.update(_typed(variables))
                self._add(inner, True)
            case ["and", *inner] if value:
                for each in inner:
                    self._add(each, True)
            case ["not", inner] if value:
                self._add(inner, False)
            case ["=", str(left), str(right)] if not value:
                self.differing.append((left, right))
            case [str(name), *arguments] if name not in ("exists", "and", "not", "=", "or", "forall", "imply"):
                if not all(isinstance(a, str) for a in arguments):
                    raise OtherForm
                self.atoms.append((name, tuple(arguments), value))
            case _:
                raise OtherForm

    def choices(
        self,
        constant: Atoms,
        fluents: Atoms,
        objects: Mapping[str, Collection[str]],
        index: Mapping[str, int],
        *,
        only_possible: bool,
    ) -> tuple[tuple[Wanted, ...], ...]:
        changing = [(n, a, v) for n, a, v in self.atoms if n in fluents]
        fixed = [(n, a, v) for n, a, v in self.atoms if n not in fluents]
        if not changing:
            raise OtherForm
        tables = [(a, constant.get(n, ())) for n, a, v in fixed if v]
        if only_possible:
            tables += [(a, fluents[n]) for n, a, v in changing if v]
        found: dict[tuple[Wanted, ...], None] = {}
        for chosen in self._completed(_joined(tables, {}), objects):
            if any(chosen.get(a, a) == chosen.get(b, b) for a, b in self.differing):
                continue
            if any(_bound(a, chosen) in constant.get(n, ()) for n, a, v in fixed if not v):
                continue
            named = ((f"{n}({', '.join(_bound(a, chosen))})", v) for n, a, v in changing)
            found[tuple((index.get(atom, -1), v) for atom, v in named)] = None
        return tuple(found)

    def _completed(
        self, choices: Iterator[dict[str, str]], objects: Mapping[str, Collection[str]]
    ) -> Iterator[dict[str, str]]:
        """With each variable that is still free as any object of its type."""
        for chosen in choices:
            free = [v for v in self.variables if v not in chosen]
            for values in product(*(sorted(objects.get(self.variables[v], ())) for v in free)):
                yield chosen | dict(zip(free, values, strict=True))


def _joined(
    tables: Sequence[tuple[tuple[str, ...], Collection[tuple[str, ...]]]], chosen: dict[str, str]
) -> Iterator[dict[str, str]]:
    """All ways to choose objects for the variables so that each tuple of arguments is in its table."""
    if not tables:
        yield chosen
        return
    # the most bound first: it leaves the fewest ways
    first = max(tables, key=lambda table: sum(not a.startswith("?") or a in chosen for a in table[0]))
    others = [table for table in tables if table is not first]
    arguments, rows = first
    for row in sorted(rows):
        extended = dict(chosen)
        if len(row) == len(arguments) and all(
            extended.setdefault(a, value) == value if a.startswith("?") else a == value
            for a, value in zip(arguments, row, strict=True)
        ):
            yield from _joined(others, extended)


def _bound(arguments: tuple[str, ...], chosen: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(chosen.get(a, a) for a in arguments)


def _members(formula: Any) -> list[Any]:
    return list(formula[1:]) if formula[:1] == ["and"] else [formula]


def _section(problem: Any, name: str) -> Any:
    found = [part for part in problem if isinstance(part, list) and part[:1] == [name]]
    if len(found) != 1 or len(found[0]) != 2 or not isinstance(found[0][1], list):
        raise OtherForm
    return found[0][1]


def _typed(words: Sequence[Any]) -> dict[str, str]:
    """``?a ?b - object ?c - location`` as types by variable."""
    types: dict[str, str] = {}
    waiting: list[str] = []
    rest = iter(words)
    for word in rest:
        if not isinstance(word, str):
            raise OtherForm
        if word == "-":
            kind = next(rest, "object")
            types.update(dict.fromkeys(waiting, str(kind)))
            waiting = []
        else:
            waiting.append(word)
    return types | dict.fromkeys(waiting, "object")


def _read(text: str) -> Any:
    """PDDL as nested lists of lower-case words; ``;`` begins a comment."""
    stack: list[list[Any]] = [[]]
    for word in re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text).lower()):
        if word == "(":
            stack.append([])
        elif word == ")":
            if len(stack) < 2:
                raise OtherForm
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(word)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise OtherForm
    return stack[0][0]
