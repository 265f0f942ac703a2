"""Best of n: several independent attempts from one state."""

from __future__ import annotations

import random
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.core.search.budget import Budget, Spender
from llenvs.core.search.policy import Policy, Value, as_action
from llenvs.core.search.result import SearchResult
from llenvs.core.search.scoring import result, score
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory


def best_of_n(
    env: Environment[Any],
    state: State[Any],
    policy: Policy,
    *,
    n: int,
    max_depth: int | None = None,
    value: Value | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> SearchResult:
    """Play `n` times from `state` to the end and keep the best.

    Args:
        env: any environment.
        state: where each attempt begins.
        policy: gives the actions; it is called with a `random.Random` of the attempt.
        n: attempts.
        max_depth: actions of an attempt at most; None: until the episode ends (or the budget).
        value: judges attempts that were cut off.
        budget: bounds; the attempt that it cuts off counts with what it has.
        seed: of the attempts' random generators.

    Raises:
        InvalidOption: `n` or `max_depth` is not positive, or nothing bounds an episode without end.
    """
    check_positive(n=n, max_depth=max_depth)
    if max_depth is None and env.spec.max_steps is None and not (budget and budget.is_bounded):
        raise InvalidOption("max_depth", None, f"must be given, since episodes of {env.spec.id} have no bound")
    spender = Spender(env, budget)
    found: list[tuple[float, Trajectory]] = []
    for attempt in range(n):
        trajectory = play(spender, Trajectory(state), policy, random.Random(f"{seed}/{attempt}"), max_depth)
        found.append((score(trajectory, value), trajectory))
        if spender.exhausted:
            break
    return result(found, spender)


def play(
    spender: Spender, trajectory: Trajectory, policy: Policy, rng: random.Random, max_depth: int | None
) -> Trajectory:
    """`trajectory` played on by `policy`, by `max_depth` actions at most and as far as the budget goes."""
    left = max_depth
    while not trajectory.done and (left is None or left > 0):
        action = as_action(policy(trajectory.final_state, rng))
        taken = spender.step(trajectory.final_state, action)
        if taken is None:
            break
        trajectory = trajectory.append(action, taken)
        left = None if left is None else left - 1
    return trajectory


def check_positive(**numbers: int | None) -> None:
    """Raise `InvalidOption` for the first number that is neither None nor a positive integer."""
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise InvalidOption(name, number, "must be a positive integer")
