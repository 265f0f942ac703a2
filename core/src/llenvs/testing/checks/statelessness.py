"""A step depends on its arguments alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llenvs.core.environment import StepResult
from llenvs.core.state import State
from llenvs.testing.check import NotApplicable, check
from llenvs.testing.difference import difference
from llenvs.testing.subject import Step, Subject, text_of

_WORKERS = 4


@check("step() leaves its state and action as they were", needs=["encoding"])
def step_pure(subject: Subject) -> Iterator[str]:
    """JSON of the inputs before and after each step."""
    for step in subject.steps:
        where = f"step {step.state.metadata.step}"
        if text_of(step.state) != step.state_before:
            differs = difference(State.from_json(step.state_before or ""), step.state)
            yield f"{where} changed the state that it was given: {differs}"
        if text_of(step.action) != step.action_before:
            yield f"{where} changed the action that it was given"


@check("the same step twice gives the same result", needs=["step_pure"])
def step_repeatable(subject: Subject) -> Iterator[str]:
    """Twice in a row, with the global random state in between."""
    _needs_determinism(subject)
    env = subject.environment
    for step in subject.steps:
        first = env.step(step.state, step.action)
        random.random()
        yield from _compared(step, [first, env.step(step.state, step.action)], "taken again")


@check("old states can be stepped after newer ones, in any order", needs=["step_repeatable"])
def old_states(subject: Subject) -> Iterator[str]:
    """All steps backwards, and across the episodes."""
    _needs_determinism(subject)
    env = subject.environment
    for step in reversed(subject.steps):
        yield from _compared(step, [env.step(step.state, step.action)], "taken after newer ones")
    shuffled = subject.steps
    random.Random(0).shuffle(shuffled)
    for step in shuffled:
        yield from _compared(step, [env.step(step.state, step.action)], "taken among other episodes")


@check("steps from several threads at once give the same results", needs=["old_states"])
def threads(subject: Subject) -> Iterator[str]:
    """Every step several times, all at once."""
    _needs_determinism(subject)
    env = subject.environment
    steps = subject.steps * _WORKERS
    random.Random(0).shuffle(steps)
    with ThreadPoolExecutor(_WORKERS) as pool:
        results = list(pool.map(lambda s: env.step(s.state, s.action), steps))
    for step, result in zip(steps, results, strict=True):
        yield from _compared(step, [result], "taken by one of several threads")


@check("areset and astep agree with reset and step", needs=["threads", "reset_by_task"])
def async_twins(subject: Subject) -> Iterator[str]:
    """One task, several steps at once; in a loop of its own, so that it works inside a running one."""
    env = subject.environment
    walk = subject.walks[0]
    steps = list(walk.steps)

    async def play() -> tuple[State[Any], list[StepResult]]:
        state, _ = await env.areset(seed=walk.seed, options={"task_index": walk.task_index})
        return state, list(await asyncio.gather(*(env.astep(s.state, s.action) for s in steps)))

    with ThreadPoolExecutor(1) as pool:
        state, results = pool.submit(lambda: asyncio.run(play())).result()
    differs = difference(walk.initial, state)
    if differs:
        yield f"areset differs from reset in {differs}"
    if env.spec.deterministic:
        for step, result in zip(steps, results, strict=True):
            yield from _compared(step, [result], "taken by astep")


def _compared(step: Step, results: Iterable[StepResult], how: str) -> Iterator[str]:
    for result in results:
        differs = difference(step.result, result)
        if differs:
            yield f"step {step.state.metadata.step} {how} differs in {differs}"


def _needs_determinism(subject: Subject) -> None:
    if not subject.environment.spec.deterministic:
        raise NotApplicable("the spec says that steps are not deterministic")
