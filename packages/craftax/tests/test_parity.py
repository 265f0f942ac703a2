"""State by state beside the upstream's own run."""

from __future__ import annotations

import random

import numpy as np
import pytest
from craftax_play import Alone, differing

from llenvs import Action
from llenvs_craftax.environment import CraftaxEnvironment


@pytest.mark.parametrize(("variant", "steps"), [("classic", 1000), ("full", 150)])
def test_random_steps_equal_the_upstreams_own(request: pytest.FixtureRequest, variant: str, steps: int) -> None:
    env: CraftaxEnvironment = request.getfixturevalue(variant)
    rng, seed = random.Random(1), 100
    alone, (state, _) = Alone(env, seed), env.reset(seed=seed)
    assert differing(env.arrays(state), alone.arrays()) == []
    episodes = 1
    for number in range(steps):
        action = rng.randrange(len(env.actions))
        reward, done, _ = alone.step(action)
        result = env.step(state, Action(str(action)))
        state = result.next_state
        assert differing(env.arrays(state), alone.arrays()) == [], number
        assert (result.rewards.total, result.done) == (reward, done)
        if done:
            seed, episodes = seed + 1, episodes + 1
            alone, (state, _) = Alone(env, seed), env.reset(seed=seed)
    assert np.array_equal(env.symbolic_observation(state), np.asarray(alone.observation))
    assert episodes > 2 or variant == "full"


def test_the_last_step_tells_what_the_upstream_tells(classic: CraftaxEnvironment) -> None:
    alone, (state, _) = Alone(classic, 3), classic.reset(seed=3)
    while not state.is_terminal:
        result = classic.step(state, Action("sleep"))
        _, _, info = alone.step(classic.actions.index("sleep"))
        state = result.next_state
    told = {name.partition("/")[2] for name, value in info.items() if name.startswith("Achievements/") and value}
    assert told == set(state.metadata.info["achievements"]) == {"wake_up"}
    assert result.rewards["score"].reward == pytest.approx(float(info["score"]), rel=1e-5)
