"""The reward is the upstream's, taken apart by name."""

from __future__ import annotations

import random

import pytest
from craftax_play import SCRIPT, Alone, Make, play

import llenvs
from llenvs import Action
from llenvs.core.errors import InvalidOption, UnknownEnvironment, UnknownName, UnknownOption
from llenvs.core.signals import RewardType
from llenvs_craftax.environment import CraftaxEnvironment


def test_signals_of_a_step(classic: CraftaxEnvironment) -> None:
    _, results = play(classic, *SCRIPT, seed=0)
    assert [(s.name, s.reward, s.weight, s.reward_type) for s in results[4].rewards] == [
        ("health", 0.0, 1.0, RewardType.STEP),
        ("collect_sapling", 1.0, 1.0, RewardType.STEP),
    ]
    assert results[0].rewards.names == ("health",)


def test_health_is_told_apart_from_achievements_without_loss(classic: CraftaxEnvironment) -> None:
    """A float32 tenth is not a tenth."""
    alone, (state, _) = Alone(classic, 3), classic.reset(seed=3)
    changes = set()
    while not state.is_terminal:
        result = classic.step(state, Action("sleep"))
        assert result.rewards.total == alone.step(6)[0]
        changes.add(result.rewards["health"].reward)
        state = result.next_state
    assert -0.20000000298023224 in changes


def test_weights_of_full(make: Make) -> None:
    env = make("craftax", god_mode=True)
    _, (result,) = play(env, "noop", seed=1)
    weights = {s.name: s.weight for s in result.rewards if s.name != "health"}
    assert (weights["collect_ruby"], weights["collect_coal"]) == (3.0, 1.0)
    assert all(s.reward == 1.0 for s in result.rewards if s.name != "health")


def test_a_last_step_has_all_signals(make: Make, classic: CraftaxEnvironment) -> None:
    env = make("craftax-classic-text", max_timesteps=8)
    _, results = play(env, *SCRIPT, seed=0)
    last = results[-1].rewards
    assert last.names == ("health", *classic.achievements, "achieved", "score")
    assert [s.name for s in last if s.reward == 1.0] == ["collect_wood"]
    assert last.total == 1.0
    assert last["achieved"].reward == pytest.approx(2 / 22)
    assert (last["achieved"].weight, last["score"].weight) == (0.0, 0.0)
    assert env.compute_rewards(results[-2].next_state, Action("do"), results[-1].next_state) == last


def test_a_goal_decides_success(make: Make) -> None:
    env = make("craftax-classic-text", max_timesteps=8, goal="collect_wood")
    _, results = play(env, *SCRIPT, seed=0)
    assert env.spec.is_success(results[-1].rewards) is True
    other = make("craftax-classic-text", max_timesteps=8, goal="collect_drink")
    _, results = play(other, *SCRIPT, seed=0)
    assert other.spec.is_success(results[-1].rewards) is False
    with pytest.raises(UnknownName, match="unknown achievement 'collect_wod'; did you mean 'collect_wood'"):
        make("craftax-classic-text", goal="collect_wod")
    with pytest.raises(UnknownName, match="unknown achievement 'collect_ruby'"):
        make("craftax-classic-text", goal="collect_ruby")


def test_lava_ends_the_game(classic: CraftaxEnvironment) -> None:
    from test_observations import changed

    state, _ = classic.reset(seed=0)
    world = classic.arrays(state)["map"]
    world[32, 31] = 14
    result = classic.step(changed(classic, state, map=world), Action("left"))
    assert (result.terminated, result.truncated, result.info["ending"]) == (True, False, "lava")
    assert result.rewards["health"].reward == pytest.approx(-0.9)
    assert "You have stepped into lava and died." in result.next_state.observation.prompt


def test_the_boss_beaten_is_a_win(full: CraftaxEnvironment) -> None:
    from test_observations import changed

    state = changed(full, full.reset(seed=0)[0], boss_progress=8)
    result = full.step(state, Action("noop"))
    assert (result.terminated, result.info["ending"]) == (True, "won")
    assert "score" not in result.rewards
    assert len(result.rewards) == 1 + 67 + 1


def test_options_change_the_game(make: Make, classic: CraftaxEnvironment) -> None:
    short = make("craftax-classic-text", day_length=20)
    _, ours = play(short, *["noop"] * 14, seed=0)
    assert "Daylight 0 %." in ours[-1].next_state.observation.prompt
    without = [make("craftax-classic-text", always_diamond=False).reset(seed=s)[0] for s in range(6)]
    diamonds = [(classic.arrays(s)["map"] == 10).any() for s in without]
    assert not all(diamonds)
    assert all((classic.arrays(classic.reset(seed=s)[0])["map"] == 10).any() for s in range(6))


def test_wrong_options_are_named(make: Make) -> None:
    with pytest.raises(UnknownOption, match="god_mode"):
        make("craftax-classic", god_mode=True)
    with pytest.raises(UnknownEnvironment, match="did you mean 'craftax-pixels'"):
        make("craftax-pixel")
    for option, value in (("tile_size", 4), ("size", 0), ("observation_mode", "smell"), ("key_mode", "x")):
        with pytest.raises(InvalidOption, match=option):
            make("craftax", **{option: value})


def test_extra_rewards(make: Make) -> None:
    env = make("craftax-classic", extra_rewards=[{"type": "length", "max_characters": 4}])
    _, (result,) = play(env, "noop", seed=0)
    assert result.rewards.names == ("health", "length")


def test_a_batch_gives_what_single_steps_give(make: Make) -> None:
    env = make("craftax-classic-text")
    rng = random.Random(0)
    states = [env.reset(seed=seed)[0] for seed in range(6)]
    for _ in range(4):
        actions = [Action(rng.choice(["left", "do", "up", "3", "nothing at all"])) for _ in states]
        results = env.step_batch(states, actions)
        assert results == [env.step(s, a) for s, a in zip(states, actions, strict=True)]
        states = [r.next_state for r in results]
    same = env.step_batch([states[0]] * 2 + [env.branch(states[0], 3)], [Action("do")] * 3)
    assert same[0] == same[1]
    assert env.step_batch([], []) == []
    with pytest.raises(InvalidOption, match="as many as states"):
        env.step_batch(states, [])
    with pytest.raises(InvalidOption, match="must be 1 for step_batch"):
        make("craftax-classic", max_actions=3).step_batch(states, [Action("do")] * 6)


def test_both_games_are_listed() -> None:
    from llenvs_craftax import ADAPTER

    names = [info.name for info in ADAPTER.list_environments()]
    assert {"craftax", "craftax-classic", "craftax-pixels", "craftax-classic-pixels"} < set(names)
    assert {"craftax-symbolic", "craftax-classic-symbolic"} < set(names)
    assert "max_timesteps" in {option.name for option in ADAPTER.describe("craftax").options}
    assert llenvs.make("craftax/craftax-pixels", observation_mode="text").spec.supports_images is False
