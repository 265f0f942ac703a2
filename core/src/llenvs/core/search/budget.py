"""What a search may spend."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import InvalidOption
from llenvs.core.state import State


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of a search; whichever is reached first ends it.

    Attributes:
        steps: calls of `env.step`; None for no bound.
        seconds: wall time, looked at before each step; None for no bound.
    """

    steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "seconds"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
                raise InvalidOption(f"budget.{name}", value, "must be a positive number, or None for no bound")

    @property
    def is_bounded(self) -> bool:
        """Whether there is any bound."""
        return self.steps is not None or self.seconds is not None


class Spender:
    """Takes the steps of one search and counts them."""

    def __init__(self, env: Environment[Any], budget: Budget | None) -> None:
        self._env = env
        self._budget = budget or Budget()
        self._began = time.monotonic()
        self.steps = 0
        self.exhausted = False

    @property
    def seconds(self) -> float:
        """Wall time since the search began."""
        return time.monotonic() - self._began

    def step(self, state: State[Any], action: Action) -> StepResult | None:
        """`env.step`, or None once the budget is spent."""
        limits = self._budget
        if (limits.steps is not None and self.steps >= limits.steps) or (
            limits.seconds is not None and self.seconds >= limits.seconds
        ):
            self.exhausted = True
            return None
        self.steps += 1
        return self._env.step(state, action)
