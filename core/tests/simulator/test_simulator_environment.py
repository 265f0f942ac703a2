"""Stateless over stateful: every state ever seen can be stepped, and what that costs is bounded."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from changing_upstreams import (
    Local,
    Portable,
    Replayed,
    Sometimes,
    Talking,
    Unrecorded,
    environment,
    local,
    portable,
    replayed,
)

from llenvs import Action, State, Trajectory
from llenvs.core.encoding import dumps
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidAction, InvalidOption, ReplayDiverged, TaskIndexOutOfRange, UpstreamFailed
from llenvs.core.simulator import CacheLimits, Frame, Recipe, Simulator, SimulatorEnvironment, SimulatorOptions
from llenvs.testing import EnvironmentConformance, check_environment
from llenvs.testing.second_process import replayed as in_second_process
from llenvs.testing.subject import Subject

KINDS = [Replayed, Local, Portable]
MAKERS = [replayed, local, portable]


class TestReplayed(EnvironmentConformance):
    make = staticmethod(replayed)
    max_steps = 12


class TestLocal(EnvironmentConformance):
    make = staticmethod(local)
    max_steps = 12


class TestPortable(EnvironmentConformance):
    make = staticmethod(portable)
    max_steps = 12


def walk(env: Environment[Any], task: int, steps: int, seed: int = 0) -> Trajectory:
    rng = random.Random(task)
    trajectory = Trajectory(env.reset(seed=seed, options={"task_index": task})[0])
    for _ in range(steps):
        trajectory = trajectory.step(env, Action("x" * rng.randrange(8)))
    return trajectory


@pytest.mark.parametrize("kind", KINDS)
def test_it_shows_what_the_upstream_alone_shows(kind: type[Simulator]) -> None:
    with environment(kind) as env:
        ours = walk(env, 2, 10, seed=7)
    alone = kind()
    assert alone.start(2, 7).observation == ours.initial_state.observation
    for transition in ours:
        frame = alone.act(transition.action)
        assert transition.next_state.observation == frame.observation
        assert transition.rewards.signals == frame.signals
        assert transition.next_state.hidden["truth"] == frame.truth
        assert transition.next_state.metadata.info["place"] == frame.info["place"]


@pytest.mark.parametrize("kind", KINDS)
def test_branches_at_random_earlier_states_from_four_threads(kind: type[Simulator]) -> None:
    limits = CacheLimits(live=2, snapshots=20)
    with environment(kind, limits) as env:
        walks = [walk(env, task, 50) for task in range(3)]
        rng = random.Random(0)
        transitions = [t for w in walks for t in rng.sample(list(w), 10)] * 2
        rng.shuffle(transitions)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda t: env.step(t.state, t.action), transitions))
        assert [dumps(r) for r in results] == [dumps(t.result) for t in transitions]
        assert env.stats.live <= 2
        assert env.stats.at_work == 0


@pytest.mark.parametrize("maker", MAKERS)
def test_branches_in_a_second_process_from_json_alone(maker: Any) -> None:
    subject = Subject(
        maker, lambda s, r: "x" * r.randrange(8), max_steps=50, importable=f"changing_upstreams:{maker.__name__}"
    )
    steps = random.Random(1).sample(subject.steps, 10)
    _, results = in_second_process(subject, steps)
    assert results == [dumps(step.result) for step in steps]
    subject.environment.close()


def test_the_newest_state_costs_no_replay_and_an_old_one_only_what_lies_between() -> None:
    with environment(Replayed) as env:
        Replayed.acted = 0
        played = walk(env, 0, 20)
        assert (Replayed.acted, env.stats.replayed, env.stats.continued) == (20, 0, 20)
        env.step(played.states[15], Action("other"))
        assert (Replayed.acted, env.stats.replayed) == (20 + 15 + 1, 15)
        # the simulator that took "other" is one step behind this state
        branch = played.branch(15).step(env, Action("other"))
        assert env.stats.replayed == 30
        later = branch.step(env, Action("more"))
        assert env.stats.replayed == 30
        assert later.step(env, Action("")).final_state.metadata.step == 18


def test_local_snapshots_are_restored_and_the_rest_replayed() -> None:
    with environment(Local, CacheLimits(snapshot_every=5)) as env:
        played = walk(env, 0, 20)
        assert env.stats.snapshots == 5  # after 0, 5, 10, 15, 20 actions
        result = env.step(played.states[13], played.actions[13])
        assert dumps(result) == dumps(played.transitions[13].result)
        assert (env.stats.restored, env.stats.replayed) == (1, 3)
        env.step(played.states[13], Action("again"))  # what was replayed to is kept
        assert (env.stats.restored, env.stats.replayed) == (2, 3)


def test_a_state_that_cannot_be_saved_is_replayed_to_from_the_last_that_could() -> None:
    with environment(Sometimes) as env:
        played = walk(env, 0, 20)
        assert env.stats.snapshots == 11  # after 0, 2, ..., 20 actions
        result = env.step(played.states[13], played.actions[13])
        assert dumps(result) == dumps(played.transitions[13].result)
        assert (env.stats.restored, env.stats.replayed) == (1, 1)


def test_snapshots_are_bounded_in_number_and_bytes_and_evictions_are_counted() -> None:
    with environment(Local, CacheLimits(snapshots=7)) as env:
        walk(env, 0, 20)
        assert (env.stats.snapshots, env.stats.snapshot_bytes, env.stats.evicted_snapshots) == (7, 7000, 14)
    with environment(Local, CacheLimits(snapshot_bytes=4500)) as env:
        played = walk(env, 0, 20)
        assert (env.stats.snapshots, env.stats.snapshot_bytes, env.stats.evicted_snapshots) == (4, 4000, 17)
        first = env.step(played.states[3], played.actions[3])
        assert dumps(first) == dumps(played.transitions[3].result)


def test_live_simulators_are_bounded_and_evictions_are_counted() -> None:
    with environment(Replayed, CacheLimits(live=3)) as env:
        for task in range(5):
            walk(env, task, 2)
        stats = env.stats
        assert (stats.live, stats.created, stats.evicted_live, stats.at_work) == (3, 3, 2, 0)


def test_two_branches_never_share_a_simulator() -> None:
    """Both threads are inside `act` at once, from the same state."""
    both = threading.Barrier(2, timeout=20)
    users: list[Simulator] = []

    class Meeting(Replayed):
        def act(self, action: Action) -> Frame:
            if action.text == "meet":
                both.wait()
                users.append(self)
            return super().act(action)

    with environment(Meeting) as env:
        state = walk(env, 0, 3).final_state
        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(lambda _: env.step(state, Action("meet")), range(2))
        assert one.next_state == other.next_state
        assert users[0] is not users[1]


def test_more_threads_than_simulators_wait_for_one_another() -> None:
    most, at_work, lock = 0, 0, threading.Lock()

    class Slow(Portable):
        def act(self, action: Action) -> Frame:
            nonlocal most, at_work
            with lock:
                at_work += 1
                most = max(most, at_work)
            time.sleep(0.002)
            with lock:
                at_work -= 1
            return super().act(action)

    with environment(Slow, CacheLimits(live=2)) as env:
        played = walk(env, 0, 10)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda t: env.step(t.state, t.action), list(played) * 4))
        assert [r.next_state for r in results] == list(played.states[1:]) * 4
        assert most == 2
        assert (env.stats.created, env.stats.live, env.stats.at_work) == (2, 2, 0)


def test_an_upstream_that_does_not_repeat_itself_is_caught() -> None:
    with environment(Unrecorded) as env:
        played = walk(env, 0, 3)
        with pytest.raises(ReplayDiverged) as caught:
            env.step(played.states[2], Action("again"))
    error = caught.value
    assert error.step == 0
    assert error.recorded == played.states[0].observation.prompt
    assert error.replayed.startswith("hello: ")
    assert error.replayed != error.recorded
    assert repr(error.recorded) in str(error)
    assert repr(error.replayed) in str(error)
    assert "step 0" in str(error)


def test_recording_its_replies_mends_it() -> None:
    with environment(Talking) as env:
        played = walk(env, 0, 5)
        asked = Talking.said
        branch = env.step(played.states[3], Action("again"))
        assert Talking.said == asked + 1  # the replay of four calls asked nobody
        heard = played.states[3].observation.prompt.split(": ")[1]
        assert branch.next_state.observation.prompt == f"again: {heard} {asked + 1}"
        copy = State.from_json(branch.next_state.to_json())
        assert copy.hidden["recipe"].turns[4].replies == (asked + 1,)
    with environment(Talking) as elsewhere:
        after = elsewhere.step(copy, Action("on")).next_state.observation.prompt
        assert after == f"on: {heard} {asked + 1} {asked + 2}"


def test_the_step_that_differs_is_named_also_when_it_is_not_the_first() -> None:
    with environment(Replayed) as env:
        state = walk(env, 0, 6).states[4]
        recipe: Recipe = state.hidden["recipe"]
        forged = replace(recipe.turns[2], observed="0" * 16, excerpt="a dragon")
        turns = (*recipe.turns[:2], forged, *recipe.turns[3:])
        other = replace(state, hidden={**state.hidden, "recipe": replace(recipe, turns=turns)})
        with pytest.raises(ReplayDiverged, match="at step 2; recorded: 'a dragon'") as caught:
            env.step(other, Action("x"))
        assert caught.value.replayed == recipe.turns[2].excerpt


def test_a_forged_recipe_cannot_poison_the_cache() -> None:
    with environment(Replayed) as env:
        played = walk(env, 0, 4)
        mine = played.states[3]
        forged = replace(mine.hidden["recipe"])
        forged.__dict__["key"] = played.final_state.hidden["recipe"].key  # not part of the JSON
        copy = State.from_json(replace(mine, hidden={**mine.hidden, "recipe": forged}).to_json())
        assert copy == mine
        assert env.step(copy, played.actions[3]).next_state == played.final_state


def test_states_of_others_and_incomplete_ones_are_refused() -> None:
    with environment(Replayed) as env, environment(Local) as other:
        state = walk(env, 0, 1).final_state
        with pytest.raises(InvalidAction, match="kit/local: this state belongs to kit/replayed"):
            other.step(state, Action("x"))
        with pytest.raises(InvalidAction, match="another kind of environment"):
            env.step(replace(state, hidden=None), Action("x"))
        recipe = state.hidden["recipe"]
        for changed in (replace(recipe, turns=()), replace(recipe, turns=recipe.turns[1:])):
            with pytest.raises(InvalidAction, match="kit/replayed: this state"):
                env.step(replace(state, hidden={**state.hidden, "recipe": changed}), Action("x"))
        for snapshot in (7, "x", b"x", [1]):  # recipes are replayed here, without a snapshot
            with pytest.raises(InvalidAction, match="kit/replayed: this state is incomplete"):
                env.step(replace(state, hidden={**state.hidden, "snapshot": snapshot}), Action("x"))
        outside = replace(recipe, task_index=9)
        with pytest.raises(TaskIndexOutOfRange):
            env.step(replace(state, hidden={**state.hidden, "recipe": outside}), Action("x"))


def test_whatever_an_upstream_raises_is_said_and_its_simulator_gone() -> None:
    class Fragile(Replayed):
        closed = 0

        def act(self, action: Action) -> Frame:
            if action.text == "bad":
                raise KeyError("a hole in the floor")
            return super().act(action)

        def close(self) -> None:
            Fragile.closed += 1

    with environment(Fragile) as env:
        state = walk(env, 0, 3).final_state
        with pytest.raises(UpstreamFailed, match="taking the action 'bad': KeyError: 'a hole in the floor'"):
            env.step(state, Action("bad"))
        assert (Fragile.closed, env.stats.live, env.stats.at_work) == (1, 0, 0)
        assert env.step(state, Action("good")).next_state.metadata.step == 4
    assert Fragile.closed == 2


def test_a_simulator_that_cannot_be_made_is_said() -> None:
    def broken() -> Simulator:
        raise OSError("no such library")

    env = SimulatorEnvironment(replayed().spec, broken, num_tasks=1)
    with pytest.raises(UpstreamFailed, match="making a simulator: OSError: no such library"):
        env.reset()
    assert env.stats.at_work == 0


def test_bounds_are_checked() -> None:
    with pytest.raises(InvalidOption, match="live: must be an integer of at least 1"):
        CacheLimits(live=0)
    assert SimulatorOptions(max_live=2, snapshot_every=3).limits == CacheLimits(live=2, snapshot_every=3)


def test_an_environment_that_repeats_nothing_fails_the_kit() -> None:
    """The kit is no rubber stamp for the layer: an upstream that is declared deterministic and is not."""

    class Lying(Unrecorded):
        pass

    def make() -> SimulatorEnvironment:
        env = environment(Lying)
        env._spec = replace(env.spec, deterministic=True)
        return env

    report = check_environment(make, raise_on_violation=False)
    assert {"reset_by_task", "step_repeatable"} & set(report.failed)


def test_fork_gives_trajectories_to_go_on_from() -> None:
    with environment(Local) as env:
        state = walk(env, 0, 5).final_state
        branches = [b.step(env, Action("y" * i)) for i, b in enumerate(env.fork(state, 3))]
        assert len({b.final_state.observation.prompt for b in branches}) == 3
        assert {b.final_state.metadata.step for b in branches} == {6}
        with pytest.raises(InvalidOption, match="n: must be a positive integer"):
            env.fork(state, 0)
