"""A game in the planner's form, SAS+: which values a state has, and the same task begun in another state.

The format is that of Fast Downward's translator, version 3 (its documentation calls it the translator output
format). Variables are numbered in the order of the text, operators too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

TRUE, FALSE = 0, 1
"""Values of a variable that stands for one atom."""

_VARIABLE = re.compile(r"begin_variable\n\S+\n(-?\d+)\n(\d+)\n(.*?)end_variable\n", re.DOTALL)
_ATOM = re.compile(r"Atom ([^\n]+)\nNegatedAtom \1\n")
_CONDITIONAL_EFFECT = re.compile(r"^\d+(?: -?\d+){5,}$", re.MULTILINE)
_MOST_VARIABLES = 1 << 16


@dataclass(frozen=True, slots=True)
class Effect:
    """`variable` gets `value` where all `conditions`, pairs of variable and value, hold before."""

    variable: int
    value: int
    conditions: tuple[tuple[int, int], ...] = ()


class SasTask:
    """A task, read from its text.

    Attributes:
        atoms: what each variable says when it is `TRUE`, such as ``opened(drawer_1)``; "" for one that has more
            values than true and false.
        derived: variables that the planner computes from others (by its axioms).
        initial: the values at the beginning.
    """

    def __init__(self, text: str) -> None:
        head, found, rest = text.partition("begin_state\n")
        state, ended, tail = rest.partition("end_state\n")
        if not found or not ended:
            raise ValueError("the planner's translation has no initial state")
        found_variables = _VARIABLE.findall(head)
        self._head, self._tail = (head + found).encode(), (ended + tail).encode()
        self.initial = tuple(int(line) for line in state.split())
        self.derived = frozenset(n for n, (layer, _, _) in enumerate(found_variables) if layer != "-1")
        names = [_ATOM.fullmatch(facts) for _, _, facts in found_variables]
        self.atoms = tuple("" if name is None else name[1] for name in names)
        if len(self.atoms) != len(self.initial):
            raise ValueError("the planner's translation has another number of variables than of values")

    @cached_property
    def index(self) -> dict[str, int]:
        """Variables by their atoms."""
        return {atom: number for number, atom in enumerate(self.atoms) if atom}

    @cached_property
    def can_begin_anywhere(self) -> bool:
        """Whether a state is the values of the variables that are not derived, and follows from the effects.

        It is not where a variable has more than two values, or where an effect depends on a derived variable.
        """
        if not all(self.atoms) or len(self.atoms) > _MOST_VARIABLES:
            return False
        conditional = (_effect(line) for line in _CONDITIONAL_EFFECT.findall(self._tail.decode()))
        return not any(v in self.derived for effect in conditional for v, _ in effect.conditions)

    def begun_at(self, differing: Iterable[int]) -> bytes:
        """The text of the task that begins where the variables `differing` have the other of their two values.

        None of them may be derived: the planner takes a derived variable's value in the text for the one it falls
        back to whenever no axiom applies.
        """
        values = [b"%d" % value for value in self.initial]
        for number in differing:
            values[number] = b"%d" % (1 - self.initial[number])
        return b"%s%s\n%s" % (self._head, b"\n".join(values), self._tail)

    def effects(self, operator: int) -> tuple[Effect, ...]:
        """The effects of an operator, in their order."""
        lines = self._operators[operator].split("\n")
        at = 2 + int(lines[1])  # after the name and the conditions that always hold
        return tuple(_effect(line) for line in lines[at + 1 : at + 1 + int(lines[at])])

    @cached_property
    def _operators(self) -> list[str]:
        return self._tail.decode().split("begin_operator\n")[1:]

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return len(self._head) + len(self._tail)


def _effect(line: str) -> Effect:
    """An effect's line: number of conditions, these, the variable, its value before (-1: any) and after."""
    numbers = [int(word) for word in line.split()]
    count = numbers[0]
    pairs = numbers[1 : 1 + 2 * count]
    return Effect(numbers[-3], numbers[-1], tuple(zip(pairs[::2], pairs[1::2], strict=True)))
