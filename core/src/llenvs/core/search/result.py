"""What a search found."""

from __future__ import annotations

from dataclasses import dataclass

from llenvs.core.action import Action
from llenvs.core.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class ActionStatistics:
    """What a tree search learned of one action in the state it began in: visits, and the mean return after it."""

    action: Action
    visits: int
    mean_return: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best that was found.

    Attributes:
        trajectory: the steps from the state the search began in; they were really taken.
        score: sum of their rewards, and the value of their last state if it is not terminal and a value was given.
        steps: calls of `env.step` that the search made.
        seconds: wall time.
        exhausted: whether the budget ended it.
        candidates: other trajectories, best first, with their scores (best-of-n and beam search).
        root: the actions of the first state, most visited first (tree search).
    """

    trajectory: Trajectory
    score: float
    steps: int
    seconds: float
    exhausted: bool
    candidates: tuple[tuple[float, Trajectory], ...] = ()
    root: tuple[ActionStatistics, ...] = ()
