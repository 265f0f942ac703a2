"""How trajectories compare."""

from __future__ import annotations

from collections.abc import Iterable

from llenvs.core.search.budget import Spender
from llenvs.core.search.policy import Value
from llenvs.core.search.result import SearchResult
from llenvs.core.trajectory import Trajectory


def score(trajectory: Trajectory, value: Value | None) -> float:
    """Rewards so far, and the value of the last state where the episode goes on."""
    ahead = 0.0 if value is None or trajectory.done else float(value(trajectory.final_state))
    return trajectory.total_reward + ahead


def best_first(scored: Iterable[tuple[float, Trajectory]]) -> list[tuple[float, Trajectory]]:
    """By score, then the shorter first, then as they came."""
    return sorted(scored, key=lambda each: (-each[0], len(each[1])))


def result(scored: Iterable[tuple[float, Trajectory]], spender: Spender) -> SearchResult:
    """The best of `scored`, and the others behind it."""
    (best, trajectory), *others = best_first(scored)
    return SearchResult(trajectory, best, spender.steps, spender.seconds, spender.exhausted, tuple(others))
