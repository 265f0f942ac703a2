"""Beginnings: what `reset` gives, accepts and refuses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from llenvs.core.errors import InvalidOption, LLEnvsError, TaskIndexOutOfRange, UnknownOption
from llenvs.core.observation import Observation
from llenvs.core.state import State
from llenvs.testing.check import check
from llenvs.testing.difference import difference
from llenvs.testing.subject import Subject


@check("reset() without arguments gives a first state and an info with task_index and seed", needs=["create"])
def reset(subject: Subject) -> Iterator[str]:
    """What comes back from the plainest call."""
    env = subject.environment
    size = env.num_tasks
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        yield f"num_tasks must be a positive integer, is {size!r}"
        return
    if len(env) != size:
        yield f"len(env) is {len(env)}, but num_tasks is {size}"
    made = env.reset()
    if not isinstance(made, tuple) or len(made) != 2:
        yield f"reset() must give (state, info), gave {type(made).__name__}"
        return
    state, info = made
    if not isinstance(state, State) or not isinstance(info, Mapping):
        yield f"reset() must give (State, dict), gave ({type(state).__name__}, {type(info).__name__})"
        return
    if not isinstance(state.observation, Observation):
        yield f"state.observation must be an Observation, is {type(state.observation).__name__}"
    if state.metadata.step != 0 or state.is_terminal:
        yield f"a first state has step 0 and is not terminal; this one has {state.metadata}"
    for key in ("task_index", "seed"):
        if type(info.get(key)) is not int:
            yield f"info[{key!r}] must be an int, is {info.get(key)!r}"
    index = info.get("task_index")
    if type(index) is int and not 0 <= index < size:
        yield f"info['task_index'] is {index}, outside 0 to {size - 1}"


@check("task_index picks a task of len(env); anything else is refused by name", needs=["reset"])
def task_index(subject: Subject) -> Iterator[str]:
    """Both bounds, both sides of them, and values of the wrong type."""
    env = subject.environment
    size = len(env)
    for index in dict.fromkeys((0, size - 1)):
        _, info = env.reset(options={"task_index": index})
        if info.get("task_index") != index:
            yield f"reset(options={{'task_index': {index}}}) reports task_index {info.get('task_index')!r}"
    for index in (-1, size, size + 10**6):
        yield from _refused(
            partial(env.reset, options={"task_index": index}), f"task_index {index}", TaskIndexOutOfRange
        )
    for wrong in (True, "0", 0.0):
        yield from _refused(
            partial(env.reset, options={"task_index": wrong}), f"task_index {wrong!r}", InvalidOption
        )
        yield from _refused(partial(env.reset, seed=cast(Any, wrong)), f"seed {wrong!r}", InvalidOption)


@check("an unknown reset option is refused with the nearest name", needs=["reset"])
def reset_options(subject: Subject) -> Iterator[str]:
    """A misspelt ``task_index``."""
    env = subject.environment
    call = partial(env.reset, options={"task_indx": 0})
    yield from _refused(call, "the reset option 'task_indx'", UnknownOption)
    try:
        call()
    except UnknownOption as error:
        if "task_index" not in error.suggestions:
            yield f"the error does not suggest 'task_index': {error}"


@check("the same task and seed give the same state", needs=["reset", "encoding"])
def reset_by_task(subject: Subject) -> Iterator[str]:
    """Again, after other tasks, and with the global random state changed."""
    env = subject.environment
    for index in subject.task_indices:
        for seed in subject.seeds:
            first = subject.start(env, index, seed)
            with _global_random(seed + 1):
                env.reset()
                again = subject.start(env, index, seed)
            differs = difference(first, again)
            if differs:
                yield f"task {index}, seed {seed}: two resets differ in {differs}"


@check("the same seed gives the same task and state", needs=["reset_by_task"])
def reset_by_seed(subject: Subject) -> Iterator[str]:
    """Without a task index; then with the seed that the info reports."""
    env = subject.environment
    for seed in subject.seeds:
        first, _ = env.reset(seed=seed)
        with _global_random(seed + 1):
            env.reset()
            again, _ = env.reset(seed=seed)
        differs = difference(first, again)
        if differs:
            yield f"reset(seed={seed}) twice differs in {differs}"
    first, info = env.reset()
    again, _ = env.reset(seed=info["seed"], options={"task_index": info["task_index"]})
    differs = difference(first, again)
    if differs:
        yield f"reset with the seed and task_index of the info does not repeat the episode: {differs}"


class _global_random:
    """Python's global random state, seeded for a block and put back afterwards."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._state = random.getstate()
        random.seed(self._seed)

    def __exit__(self, *error: object) -> None:
        random.setstate(self._state)


def _refused(call: Callable[[], Any], what: str, wanted: type[LLEnvsError]) -> Iterator[str]:
    try:
        call()
    except wanted:
        return
    except Exception as error:  # noqa: BLE001 - the wrong error is the finding
        yield f"{what} must raise {wanted.__name__}, raised {type(error).__name__}: {error}"
    else:
        yield f"{what} must raise {wanted.__name__}, but was accepted"
