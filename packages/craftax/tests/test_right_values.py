"""What the upstream shows, seen with it alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from craftax_play import SCRIPT, Make, play

from llenvs import Action
from llenvs_craftax.environment import CraftaxEnvironment


def near(value: float) -> object:
    return pytest.approx(value, abs=5e-4)


def test_the_world_of_classic_seed_0(classic: CraftaxEnvironment) -> None:
    state, info = classic.reset(seed=0)
    arrays = classic.arrays(state)
    assert info["position"] == [32, 32]
    assert arrays["player_direction"] == 3
    assert arrays["map"].sum() == 19288
    observed = classic.symbolic_observation(state)
    assert (observed.shape, observed.dtype) == ((1345,), np.float32)
    assert observed.sum() == near(68.3965)


def test_the_world_of_full_seed_0(full: CraftaxEnvironment) -> None:
    state, info = full.reset(seed=0)
    assert info["position"] == [24, 24]
    assert full.arrays(state)["player_direction"] == 3
    observed = full.symbolic_observation(state)
    assert observed.shape == (8268,)
    assert observed.sum() == near(304.5969)
    arrays = full.arrays(state)
    row = arrays["map"][0][23, 24 - 5 : 24 + 6]
    assert [dx for dx in range(-5, 6) if row[dx + 5] == 5] == [-2, -1, 0, 3]  # 5: tree


@pytest.mark.parametrize(
    ("seed", "rewarded", "end"),
    [
        (0, {5: "collect_sapling", 8: "collect_wood"}, [32, 32]),
        (1, {5: "collect_sapling"}, [32, 31]),
        (2, {8: "collect_wood"}, None),
    ],
)
def test_eight_actions_in_classic(
    classic: CraftaxEnvironment, seed: int, rewarded: dict[int, str], end: list[int] | None
) -> None:
    _, results = play(classic, *SCRIPT, seed=seed)
    assert [r.rewards.total for r in results] == [float(n in rewarded) for n in range(1, 9)]
    assert {
        n: r.info["new_achievements"][0] for n, r in enumerate(results, 1) if r.info["new_achievements"]
    } == rewarded
    if end is not None:
        assert results[-1].info["position"] == end
    if seed == 0:
        assert classic.arrays(results[-1].next_state)["inventory.wood"] == 1
        assert classic.symbolic_observation(results[-1].next_state).sum() == near(68.6605)


def test_the_key_of_the_state_is_another_game_of_chance(make: Make) -> None:
    env = make("craftax-classic", key_mode="state_rng")
    _, results = play(env, *SCRIPT, seed=0)
    assert [r.rewards.total for r in results] == [0, 0, 0, 0, 0, 0, 0, 1]
    assert results[-1].info["new_achievements"] == ["collect_wood"]
    assert env.symbolic_observation(results[-1].next_state).sum() == near(68.5606)


def test_eight_actions_in_full(full: CraftaxEnvironment) -> None:
    _, results = play(full, *SCRIPT, seed=0)
    assert [r.rewards.total for r in results] == [0, 0, 0, 1, 1, 0, 0, 0]
    assert results[3].info["new_achievements"] == ["collect_wood"]
    assert results[4].info["new_achievements"] == ["collect_sapling"]
    assert results[-1].info["position"] == [25, 25]
    assert full.symbolic_observation(results[-1].next_state).sum() == near(304.861)


def test_sleeping_to_death(classic: CraftaxEnvironment) -> None:
    state, _ = classic.reset(seed=3)
    total, slept = 0.0, 0
    while not state.is_terminal:
        result = classic.step(state, Action("sleep"))
        state, total, slept = result.next_state, total + result.rewards.total, slept + 1
    assert slept == 161
    assert result.info["timestep"] == 161
    assert classic.arrays(state)["player_health"] == 0
    assert total == near(0.1)
    assert (result.terminated, result.truncated, result.info["ending"]) == (True, False, "died")
    assert state.metadata.info["achievements"] == ["wake_up"]
    assert result.rewards["score"].reward == near(0.2334)
    assert result.rewards["achieved"].reward == 1 / 22
    assert classic.spec.is_success(result.rewards) is False
    assert "You have died." in state.observation.prompt


@pytest.mark.parametrize("action", ["17", "-1", "99"])
def test_numbers_that_are_no_action_change_nothing(classic: CraftaxEnvironment, action: str) -> None:
    """Upstream they are a noop, which takes a timestep."""
    first, (result,) = play(classic, action, seed=0)
    before, after = classic.arrays(first), classic.arrays(result.next_state)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert result.rewards.total == 0
    assert result.next_state.metadata.step == 1


def test_the_games_own_limit_of_steps_is_a_truncation(make: Make) -> None:
    env = make("craftax-classic", max_timesteps=5)
    _, results = play(env, *["noop"] * 5, seed=0)
    assert [r.done for r in results] == [False] * 4 + [True]
    last = results[-1]
    assert (last.terminated, last.truncated, last.info["ending"]) == (False, True, "time")
    assert last.rewards.total == 0
    assert env.arrays(last.next_state)["player_health"] == 9


def test_god_mode(make: Make, full: CraftaxEnvironment) -> None:
    env = make("craftax", god_mode=True)
    _, (result,) = play(env, "noop", seed=1)
    assert result.rewards.total == 29.0
    assert len(result.info["new_achievements"]) == 19
    assert env.arrays(result.next_state)["inventory.wood"] == 99
    assert sum(s.weight for s in result.rewards if s.name != "health") == 29.0
    _, (plain,) = play(full, "noop", seed=1)
    assert plain.rewards.total == 0


def test_names_and_weights(classic: CraftaxEnvironment, full: CraftaxEnvironment) -> None:
    assert (len(classic.actions), len(full.actions)) == (17, 43)
    assert classic.actions == full.actions[:17]
    assert classic.actions[:7] == ("noop", "left", "right", "up", "down", "do", "sleep")
    assert full.actions[17:21] == ("rest", "descend", "ascend", "make_diamond_pickaxe")
    assert set(classic.achievements.values()) == {1.0}
    assert (len(classic.achievements), len(full.achievements)) == (22, 67)
    assert sum(full.achievements.values()) == 226
    weights = full.achievements
    assert [weights[name] for name in ("collect_wood", "place_torch", "eat_bat", "enter_sewers")] == [1, 1, 3, 5]
    assert [weights[name] for name in ("enter_vault", "defeat_knight", "defeat_necromancer")] == [5, 5, 8]


def test_a_hundred_noops(make: Make) -> None:
    env = make("craftax-classic", show_position=True)
    _, results = play(env, *["noop"] * 100, seed=1)
    shown = json.loads(results[-1].next_state.observation.prompt)
    assert shown["vitals"] == {"health": [9, 9], "food": [6, 9], "drink": [5, 9], "energy": [6, 9]}
    assert shown["position"] == [32, 32]
    assert sum(r.rewards.total for r in results) == 0
