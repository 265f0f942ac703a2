"""Beam search: the best few of all continuations, one depth after another."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.search.best_of_n import check_positive
from llenvs.core.search.budget import Budget, Spender
from llenvs.core.search.policy import Proposer, Value, proposals
from llenvs.core.search.result import SearchResult
from llenvs.core.search.scoring import best_first, result, score
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory


def beam_search(
    env: Environment[Any],
    state: State[Any],
    propose: Proposer,
    *,
    width: int,
    max_depth: int,
    value: Value | None = None,
    key: Callable[[State[Any]], Hashable] | None = None,
    budget: Budget | None = None,
) -> SearchResult:
    """Keep the `width` best trajectories, extend each by every proposed action, and so on.

    Args:
        env: any environment.
        state: where the search begins.
        propose: the actions to try in a state.
        width: trajectories kept at each depth.
        max_depth: actions at most.
        value: what is still to come; without it, trajectories compare by their rewards so far.
        key: states of equal key count as the same, and only the first way there is followed.
        budget: bounds; what was found until then counts.

    Raises:
        InvalidOption: `width` or `max_depth` is not positive.
    """
    check_positive(width=width, max_depth=max_depth)
    spender = Spender(env, budget)
    beam = [(score(Trajectory(state), value), Trajectory(state))]
    ended: list[tuple[float, Trajectory]] = []
    passed: list[tuple[float, Trajectory]] = []
    extended: list[tuple[float, Trajectory]] = []
    seen: set[Hashable] = set() if key is None else {key(state)}
    for _ in range(max_depth):
        for _, trajectory in beam:
            for action, _ in proposals(propose, trajectory.final_state):
                taken = spender.step(trajectory.final_state, action)
                if taken is None:
                    break
                if key is not None and not taken.done:
                    mark = key(taken.next_state)
                    if mark in seen:
                        continue
                    seen.add(mark)
                longer = trajectory.append(action, taken)
                (ended if longer.done else extended).append((score(longer, value), longer))
        if spender.exhausted or not extended:
            break
        if value is None:  # rewards may be lost again further on; estimates of different depths do not compare
            passed.append(beam[0])
        beam = best_first(extended)[:width]
        extended = []
    return result([*ended, *extended, *beam, *passed], spender)
