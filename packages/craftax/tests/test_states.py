"""States are values: exact through JSON, refused when damaged, bounded in memory; and chance is theirs."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from craftax_play import Make, play

from llenvs import Action, State
from llenvs.core.encoding import dumps
from llenvs.core.errors import EpisodeOver, InvalidAction, InvalidOption
from llenvs_craftax.environment import CraftaxEnvironment
from llenvs_craftax.layout import REST

LEFT = Action("left")


def with_hidden(state: State[Any], **changes: Any) -> State[Any]:
    return replace(state, hidden={**state.hidden, **changes})


def test_a_state_steps_alike_after_json_and_after_being_dropped(make: Make) -> None:
    env = make("craftax-classic-text", max_live=1)
    rng, state, taken = random.Random(0), env.reset(seed=5)[0], []
    for _ in range(60):
        action = Action(str(rng.randrange(17)))
        result = env.step(state, action)
        taken.append((state, action, result))
        state = env.reset(seed=6)[0] if result.done else result.next_state
    for before, action, result in rng.sample(taken, 20):
        assert dumps(env.step(State.from_json(before.to_json()), action)) == dumps(result)
    assert env.stats.live == 1
    assert env.stats.evicted > 60
    assert env.stats.unpacked >= 15


def test_what_does_not_change_is_kept_once(full: CraftaxEnvironment) -> None:
    first, results = play(full, "noop", "left", "right", seed=0)
    states = [first, *(r.next_state for r in results)]
    for name in ("map", "item_map", "light_map"):
        assert len({id(state.hidden["arrays"][name]) for state in states}) == 1
    assert len({id(state.hidden["arrays"][REST]) for state in states}) == 4
    assert len(states[-1].to_json()) < 20_000


def test_the_newest_states_are_found(make: Make) -> None:
    env = make("craftax-classic")
    play(env, *["noop"] * 10, seed=0)
    assert (env.stats.unpacked, env.stats.evicted) == (0, 0)
    assert env.stats.live == 11


def test_damaged_states_are_refused(classic: CraftaxEnvironment) -> None:
    state, _ = classic.reset(seed=0)
    arrays = state.hidden["arrays"]
    raw = {name: bytearray(zlib.decompress(part)) for name, part in arrays.items()}

    def swapped(name: str, part: Any) -> State[Any]:
        return with_hidden(state, arrays={**arrays, name: part})

    def patched(leaf: str, value: bytes) -> State[Any]:
        layout = classic._game.layout
        found = next(each for each in layout.leaves if each.name == leaf)
        section = leaf if leaf in layout.sections else REST
        at = found.offset - layout.sections[section][0]
        part = bytearray(raw[section])
        part[at : at + len(value)] = value
        return swapped(section, zlib.compress(bytes(part)))

    wrong = {
        "cannot be read": [swapped("map", b"nonsense"), swapped(REST, arrays[REST][:-1] + b"\xff")],
        "has another length": [
            swapped("map", arrays["map"][:-6]),
            swapped("map", zlib.compress(bytes(4095))),
            swapped("map", zlib.compress(bytes(10**7))),
            swapped("map", arrays["map"] + b"more"),
            swapped("map", b""),
        ],
        "its arrays are not bytes": [
            swapped("map", "text"),
            with_hidden(state, arrays=[]),
            with_hidden(state, arrays=1),
        ],
        "it must have the arrays map, rest": [
            with_hidden(state, arrays={}),
            with_hidden(state, arrays={"map": arrays["map"]}),
            swapped("more", b""),
        ],
        "map has values that do not exist": [patched("map", b"\x11")],
        "achievements has values": [patched("achievements", b"\x02")],
        "player_position has values": [
            patched("player_position", b"\x40"),
            patched("player_position", b"\xff" * 4),
        ],
        "player_direction has values": [
            patched("player_direction", b"\x00"),
            patched("player_direction", b"\x05"),
        ],
        "timestep has values": [patched("timestep", b"\xff" * 4)],
        "light_level has values that are no numbers": [patched("light_level", np.float32("nan").tobytes())],
        "seed is a str, no integer": [with_hidden(state, seed="0")],
        "branch is a NoneType, no integer": [with_hidden(state, branch=None)],
        "branch is not from 0": [with_hidden(state, branch=-1), with_hidden(state, branch=2**32)],
        "its reward or achievements are none of this game": [
            with_hidden(state, reward="1"),
            with_hidden(state, unlocked=("fly",)),
            with_hidden(state, unlocked=[1]),
        ],
        "another release": [with_hidden(state, layout="00000000")],
        "another kind of environment": [replace(state, hidden=None), replace(state, hidden={"x": 1})],
    }
    for said, states in wrong.items():
        for damaged in states:
            with pytest.raises(InvalidAction, match=said):
                classic.step(damaged, LEFT)
            if "arrays" not in said and "values" not in said and "length" not in said and "read" not in said:
                with pytest.raises(InvalidAction, match=said):
                    classic.compute_rewards(state, LEFT, damaged)
    assert classic.step(state, LEFT).info["actions"] == ["left"]


def test_a_state_of_the_other_game_is_refused(classic: CraftaxEnvironment, full: CraftaxEnvironment) -> None:
    with pytest.raises(InvalidAction, match="a state of the game 'classic', not of 'full'"):
        full.step(classic.reset(seed=0)[0], LEFT)
    state, _ = full.reset(seed=0)
    arrays = full._game.layout
    part = bytearray(zlib.decompress(state.hidden["arrays"][REST]))
    level = next(leaf for leaf in arrays.leaves if leaf.name == "player_level")
    part[level.offset - arrays.sections[REST][0]] = 9
    damaged = with_hidden(state, arrays={**state.hidden["arrays"], REST: zlib.compress(bytes(part))})
    with pytest.raises(InvalidAction, match="player_level has values"):
        full.step(damaged, LEFT)


def test_a_state_can_be_stepped_in_another_form(make: Make, classic: CraftaxEnvironment) -> None:
    state, _ = classic.reset(seed=0)
    other = make("craftax-classic-symbolic").step(state, LEFT).next_state
    assert other.hidden == classic.step(state, LEFT).next_state.hidden
    assert other.observation != classic.step(state, LEFT).next_state.observation


def test_an_ended_game_cannot_go_on(make: Make) -> None:
    _, results = play(make("craftax-classic", max_timesteps=1), "noop", seed=0)
    with pytest.raises(EpisodeOver):
        make("craftax-classic").step(results[-1].next_state, LEFT)


def test_tasks_are_worlds_and_a_seed_is_one(make: Make, classic: CraftaxEnvironment) -> None:
    assert len(classic) == 100
    env = make("craftax-classic-text", size=5, seed=40)
    worlds = [env.reset(options={"task_index": i}) for i in range(5)]
    assert [info["seed"] for _, info in worlds] == [40, 41, 42, 43, 44]
    assert len({state.hidden["arrays"]["map"] for state, _ in worlds}) == 5
    for number in (0, 4):
        assert worlds[number][0].hidden == classic.reset(seed=40 + number)[0].hidden
    assert env.reset(seed=7, options={"task_index": 1})[0].hidden == classic.reset(seed=7)[0].hidden


@pytest.mark.parametrize("seed", [2**31, 2**32 - 1, 2**32, 2**70, -1])
def test_any_integer_is_a_seed(classic: CraftaxEnvironment, seed: int) -> None:
    state, info = classic.reset(seed=seed)
    assert info["seed"] == seed
    assert state.hidden["arrays"]["map"] != classic.reset(seed=0)[0].hidden["arrays"]["map"]
    assert classic.step(State.from_json(state.to_json()), LEFT).info["actions"] == ["left"]


def test_branches_meet_equal_chance_unless_told_otherwise(make: Make, classic: CraftaxEnvironment) -> None:
    state, _ = classic.reset(seed=0)
    do = [Action("do")] * 12  # on grass: a sapling with a chance of a tenth each time

    def saplings(env: CraftaxEnvironment, begin: State[Any]) -> list[float]:
        totals, at = [], begin
        for action in do:
            result = env.step(at, action)
            totals.append(result.rewards.total)
            at = result.next_state
        return totals

    equal = {tuple(saplings(classic, t.final_state)) for t in classic.fork(state, 8)}
    assert equal == {tuple(saplings(classic, state))}
    env = make("craftax-classic-text", stochastic_branching=True)
    forks = [t.final_state for t in env.fork(state, 8)]
    assert [f.observation for f in forks] == [state.observation] * 8
    assert len({tuple(saplings(env, fork)) for fork in forks}) > 2
    again = [t.final_state for t in env.fork(state, 8)]
    assert again == forks
    deeper = {f.hidden["branch"] for fork in forks[:2] for f in (t.final_state for t in env.fork(fork, 3))}
    assert len(deeper) == 6
    assert env.branch(forks[0], 0).hidden == state.hidden
    for wrong in (-1, 2**32, True, "1"):
        with pytest.raises(InvalidOption, match="is no branch"):
            env.branch(state, wrong)  # type: ignore[arg-type]
