"""The environment base: resets, bounds, limits, errors, rewards, trajectories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llenvs import (
    Action,
    Environment,
    EnvironmentSpec,
    FormatReward,
    Observation,
    Signal,
    SignalBundle,
    State,
    Trajectory,
)
from llenvs.core import Checkpoint, Generation, Transition
from llenvs.core.encoding import loads
from llenvs.core.environment import Advance, Start
from llenvs.core.errors import (
    EncodingFailed,
    EpisodeOver,
    InvalidAction,
    InvalidOption,
    TaskIndexOutOfRange,
    UnknownOption,
)


class Sum(Environment[dict[str, Any]]):
    """Add what is said until 'stop'; the reward is the number said."""

    reset_options = ("task_index", "bonus")

    def __init__(self, size: int = 10, max_steps: int | None = 3, **kwargs: Any) -> None:
        spec = EnvironmentSpec("sum", "kit", max_steps=max_steps, is_multi_turn=True, success_signal="said")
        super().__init__(spec, **kwargs)
        self._size = size

    @property
    def num_tasks(self) -> int:
        return self._size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        hidden = {"total": task_index, "seed": seed, "bonus": options.get("bonus", 0)}
        return Start(Observation(f"Begin at {task_index}."), hidden, {"of": "start"})

    def _advance(self, state: State[dict[str, Any]], action: Action) -> Advance:
        if action.text == "stop":
            return Advance(Observation("Over."), state.hidden, terminated=np.bool_(True))  # type: ignore[arg-type]
        total = state.hidden["total"] + int(action.text)
        return Advance(Observation(str(total)), {**state.hidden, "total": total}, info={"said": action.text})

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        return [Signal("said", reward=0.0 if action.text == "stop" else float(action.text))]


def start(env: Environment[Any], index: int = 0) -> State[Any]:
    return env.reset(options={"task_index": index})[0]


def test_reset() -> None:
    state, info = Sum().reset(seed=5, options={"task_index": 3, "bonus": 1})
    assert info == {"task_index": 3, "seed": 5, "of": "start"}
    assert state.metadata.info == info
    assert state.metadata.episode_id == "kit/sum#3@5"
    assert (state.metadata.step, state.is_terminal) == (0, False)
    assert state.hidden == {"total": 3, "seed": 5, "bonus": 1}
    info["seed"] = 99
    assert state.metadata.info["seed"] == 5  # the caller's dict is the caller's


def test_seeds_choose_tasks() -> None:
    env = Sum(1000)
    chosen = [env.reset(seed=s)[1]["task_index"] for s in range(20)]
    assert chosen == [env.reset(seed=s)[1]["task_index"] for s in range(20)]
    assert len(set(chosen)) > 15
    fresh = {env.reset()[1]["seed"] for _ in range(5)}
    assert len(fresh) == 5
    assert env.reset(options={"task_index": 4})[1]["seed"] == 0
    assert env.reset(seed=np.int64(7))[0] == env.reset(seed=7)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [-1, 10, 10**9])
def test_indices_out_of_range(index: int) -> None:
    with pytest.raises(TaskIndexOutOfRange, match=f"kit/sum: task_index {index} is out of range; valid: 0 to 9"):
        start(Sum(), index)


@pytest.mark.parametrize("wrong", [True, "1", 1.0, [1], np.bool_(True)])
def test_indices_and_seeds_that_are_no_integers(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="task_index: must be an integer"):
        Sum().reset(options={"task_index": wrong})
    with pytest.raises(InvalidOption, match="seed: must be an integer"):
        Sum().reset(seed=wrong)


def test_an_empty_environment() -> None:
    for options in (None, {"task_index": 0}):
        with pytest.raises(TaskIndexOutOfRange, match="the environment is empty"):
            Sum(0).reset(options=options)


def test_reset_options() -> None:
    with pytest.raises(UnknownOption, match=r"unknown option 'task_indx'; did you mean 'task_index'.*kit/sum"):
        Sum().reset(options={"task_indx": 1})
    with pytest.raises(UnknownOption, match="unknown option 5"):
        Sum().reset(options={5: 1})  # type: ignore[dict-item]
    for wrong in ("task_index", 3, ["task_index"]):
        with pytest.raises(InvalidOption, match="options: must be a mapping"):
            Sum().reset(options=wrong)  # type: ignore[arg-type]


def test_steps_count_and_truncate() -> None:
    env = Sum()
    state = start(env, 1)
    results = []
    for text in ("1", "2", "3"):
        results.append(env.step(state, Action(text)))
        state = results[-1].next_state
    assert [(r.terminated, r.truncated, r.done) for r in results] == [
        (False,) * 3,
        (False,) * 3,
        (False, True, True),
    ]
    assert [r.next_state.metadata.step for r in results] == [1, 2, 3]
    assert [r.next_state.observation.prompt for r in results] == ["2", "4", "7"]
    assert results[2].next_state.metadata.info == {"task_index": 1, "seed": 0, "of": "start", "said": "3"}
    with pytest.raises(EpisodeOver, match=r"kit/sum: the episode is over after 3 step\(s\)"):
        env.step(state, Action("4"))


def test_the_benchmark_ends_an_episode_also_at_the_limit() -> None:
    env = Sum(max_steps=1)
    result = env.step(start(env), Action("stop"))
    assert (result.terminated, result.truncated) == (True, False)
    assert type(result.terminated) is bool  # the environment gave numpy's
    assert type(result.next_state.is_terminal) is bool
    free = Sum(max_steps=None)
    state = start(free)
    for _ in range(50):
        state = free.step(state, Action("1")).next_state
    assert state.hidden["total"] == 50


def test_what_is_no_action_or_state() -> None:
    env = Sum()
    made = env.reset(seed=1)
    with pytest.raises(InvalidAction, match=r"needs an Action, got str; for text use Action\(text=...\)"):
        env.step(made[0], "1")  # type: ignore[arg-type]
    with pytest.raises(InvalidAction, match="needs a State, got tuple; note that reset returns"):
        env.step(made, Action("1"))  # type: ignore[arg-type]


def test_rewards() -> None:
    env = Sum(reward_functions=[FormatReward(weight=0.5)])
    state = start(env)
    result = env.step(state, Action("2"))
    assert result.rewards.names == ("said", "format")
    assert result.rewards.total == 2.0
    assert env.compute_rewards(state, Action("2"), result.next_state) == result.rewards
    assert env.spec.is_success(result.rewards) is True
    assert env.spec.is_success(env.step(state, Action("0")).rewards) is False
    assert env.spec.is_success(SignalBundle()) is None
    assert replace(env.spec, success_signal=None).is_success(result.rewards) is None


def test_a_reward_function_named_like_an_own_signal() -> None:
    env = Sum(reward_functions=[FormatReward(name="said")])
    with pytest.raises(InvalidOption, match="must differ from the signals of kit/sum"):
        env.step(start(env), Action("1"))


def test_async_twins_and_closing() -> None:
    env = Sum()

    async def play() -> Any:
        state, info = await env.areset(seed=3)
        result = await env.astep(state, Action("2"))
        await env.aclose()
        return state, info, result

    state, info, result = asyncio.run(play())
    assert (state, info) == env.reset(seed=3)
    assert result == env.step(state, Action("2"))
    with env as same:
        assert same is env
    env.close()
    assert repr(env) == "<Sum kit/sum, 10 tasks>"


# -- trajectories -----------------------------------------------------------------------------------------


def walked() -> Trajectory:
    env = Sum()
    trajectory = Trajectory(start(env, 1))
    for text in ("1", "2", "3"):
        trajectory = trajectory.step(env, Action(text))
    return trajectory


def test_a_trajectory_grows_by_new_values() -> None:
    env = Sum()
    empty = Trajectory(start(env, 1))
    one = empty.append(Action("1"), env.step(empty.final_state, Action("1")), Generation("1"))
    assert (len(empty), len(one)) == (0, 1)
    assert one.transitions[0].generation == Generation("1")
    assert one.transitions[0].state is empty.initial_state
    full = walked()
    assert full.done
    assert full.total_reward == 6.0
    assert [a.text for a in full.actions] == ["1", "2", "3"]
    assert [s.hidden["total"] for s in full.states] == [1, 2, 4, 7]
    with pytest.raises(EpisodeOver):
        full.step(env, Action("1"))


def test_checkpoints_and_branches() -> None:
    full = walked()
    assert full.checkpoint(2) == Checkpoint(2, full.states[2], 3.0)
    assert full.checkpoint() == Checkpoint(3, full.final_state, 6.0)
    other = full.branch(1).step(Sum(), Action("10"))
    assert [s.hidden["total"] for s in other.states] == [1, 2, 12]
    assert len(full) == 3
    for wrong in (-1, 4, True, "1"):
        with pytest.raises(InvalidOption, match=r"step: is no step of this trajectory.*valid: 0 to 3"):
            full.branch(wrong)  # type: ignore[arg-type]


def test_trajectory_json_is_exact_and_writes_states_once() -> None:
    full = walked()
    text = full.to_json()
    assert text.count("$State") - text.count("$StateMetadata") == 4
    again = Trajectory.from_json(text)
    assert again == full
    assert again.to_json() == text
    assert all(t.state is s for t, s in zip(again.transitions, again.states, strict=False))


def test_a_trajectory_made_by_hand_keeps_its_states() -> None:
    full = walked()
    odd = replace(full, transitions=(full.transitions[2], full.transitions[0]))
    again = Trajectory.from_json(odd.to_json())
    assert again == odd
    assert [t.state.hidden["total"] for t in again.transitions if t.state] == [4, 1]


def test_hostile_trajectories_are_refused() -> None:
    text = walked().to_json()
    data = json.loads(text)
    data["$Trajectory"]["transitions"]["$tuple"][1]["$Transition"]["result"] = {"$Action": {}}
    with pytest.raises(EncodingFailed, match=r"\$Transition.result must be StepResult, got Action"):
        Trajectory.from_json(json.dumps(data))
    with pytest.raises(EncodingFailed, match="expected an encoded Trajectory, got State"):
        Trajectory.from_json(walked().initial_state.to_json())
    assert isinstance(loads(text).transitions[0], Transition)
