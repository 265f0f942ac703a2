"""What guides a search: callables over states."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from llenvs.core.action import Action
from llenvs.core.errors import InvalidOption
from llenvs.core.state import State

Policy = Callable[[State[Any], random.Random], Action | str]
"""What to do in a state; sampled, so that several calls may differ. A text stands for ``Action(text)``."""

Proposer = Callable[[State[Any]], Iterable["Action | str | tuple[Action | str, float]"]]
"""The actions worth trying in a state, each alone or with its prior, a weight that is not negative."""

Value = Callable[[State[Any]], float]
"""How much reward is still to come after a state that is not terminal."""


def as_action(given: Action | str) -> Action:
    """An `Action`, also from its text."""
    return given if isinstance(given, Action) else Action(given)


def proposals(propose: Proposer, state: State[Any]) -> list[tuple[Action, float]]:
    """Different actions with priors that sum to 1, in the order of the proposer.

    Raises:
        InvalidOption: a prior is negative or no finite number.
    """
    weights: dict[str, tuple[Action, float]] = {}
    for each in propose(state):
        given, weight = each if isinstance(each, tuple) else (each, 1.0)
        if not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise InvalidOption("propose", weight, "a prior must be a finite number that is not negative")
        action = as_action(given)
        weights.setdefault(repr(action), (action, float(weight)))
    total = sum(weight for _, weight in weights.values())
    count = len(weights)
    return [(action, weight / total if total else 1 / count) for action, weight in weights.values()]
