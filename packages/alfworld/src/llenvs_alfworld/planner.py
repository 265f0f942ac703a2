"""The planner's library, which holds one task and a state of it at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fast_downward


class Planner:
    """Fast Downward as TextWorld ships it: a copy of its C library. Wrong input makes it end the process.

    Attributes:
        library: the functions, by ctypes.
        holder: whoever put the present task there and keeps track of its state; None when nobody may rely on it.
    """

    def __init__(self) -> None:
        self.library: Any = fast_downward.load_lib()
        self.holder: object = None

    def begin(self, task: bytes, holder: object) -> None:
        """Go to the initial state of a task, given as text in the translator's format."""
        self.library.load_sas(task)
        self.holder = holder

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """The library for someone who may leave any task in it."""
        self.holder = None
        yield self.library

    def applicable(self) -> list[tuple[int, str]]:
        """Numbers and names of the operators that can be applied; a name can occur several times."""
        operators = (fast_downward.Operator * self.library.get_applicable_operators_count())()
        self.library.get_applicable_operators(operators)
        return [(operator.id, operator.name) for operator in operators]

    def apply(self, operator: int) -> None:
        """Apply one of the applicable operators."""
        self.library.apply_operator(operator, None)

    def reached_goal(self) -> bool:
        """Whether the goal holds."""
        return bool(self.library.check_goal())

    def true_atoms(self) -> set[str]:
        """The atoms that hold, such as ``opened(drawer_1)``. Takes time that grows with their number squared."""
        facts = (fast_downward.Atom * self.library.get_state_size())()
        self.library.get_state(facts)
        return {fact.name.removeprefix("Atom ") for fact in facts if fact.name.startswith("Atom ")}

    def plan(self, task: bytes) -> list[str] | None:
        """Names of operators that lead from the initial state of `task` to its goal; None when it found none.

        The task and state that the library holds stay as they are.
        """
        if not self.library.solve_sas(task, False):
            return None
        operators = (fast_downward.Operator * self.library.get_last_plan_length())()
        self.library.get_last_plan(operators)
        return [operator.name for operator in operators]
