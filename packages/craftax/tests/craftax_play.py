"""Playing by actions, with ours and with the upstream alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from llenvs import Action, State, StepResult
from llenvs_craftax.environment import CraftaxEnvironment

Make = Callable[..., CraftaxEnvironment]
"""The fixture `make`: a name and options to an environment."""
SCRIPT = ("noop", "left", "up", "do", "do", "right", "down", "do")
"""The actions of the right values."""


def play(env: CraftaxEnvironment, *actions: str, seed: int) -> tuple[State[Any], list[StepResult]]:
    """The first state and the results of all steps."""
    first = state = env.reset(seed=seed)[0]
    results = []
    for action in actions:
        results.append(env.step(state, Action(action)))
        state = results[-1].next_state
    return first, results


class Alone:
    """The upstream by itself, with keys as ours by default."""

    def __init__(self, env: CraftaxEnvironment, seed: int) -> None:
        import jax

        self.jax, self.env, self.seed = jax, env._game.upstream.env, seed
        self.params = self.env.default_params
        self.observation, self.state = self.env.reset(jax.random.PRNGKey(seed), self.params)

    def step(self, action: int) -> tuple[float, bool, dict[str, Any]]:
        """Reward, done and info."""
        key = self.jax.random.fold_in(self.jax.random.PRNGKey(self.seed), self.state.timestep)
        self.observation, self.state, reward, done, info = self.env.step(key, self.state, action, self.params)
        return float(reward), bool(done), info

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state by dotted names."""
        leaves = self.jax.tree_util.tree_flatten_with_path(self.jax.device_get(self.state))[0]
        return {".".join(key.name for key in path): np.asarray(leaf) for path, leaf in leaves}


def differing(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Names of the arrays that differ in type, shape or any bit."""
    assert ours.keys() == theirs.keys()
    return [
        name
        for name, array in theirs.items()
        if (ours[name].dtype, ours[name].shape, ours[name].tobytes())
        != (array.dtype, array.shape, array.tobytes())
    ]
