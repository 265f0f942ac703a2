"""Environments called from the event loop without blocking it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from llenvs.core.action import Action
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import UpstreamFailed
from llenvs.core.state import State
from llenvs.evaluation.worker_threads import WorkerThreads

T = TypeVar("T")

MAX_THREADS = 256


class EnvironmentThreads:
    """Resets and steps of one environment, natively async where it is, in worker threads where it is not.

    The threads are its own: the loop's default pool has as few as six, on which trajectories whose environment
    waits (a container, a web page) would queue.
    """

    def __init__(self, environment: Environment[Any], concurrency: int) -> None:
        self._environment = environment
        kind = type(environment)
        self._native_reset = kind.areset is not Environment.areset
        self._native_step = kind.astep is not Environment.astep
        self._threads = WorkerThreads(max(1, min(concurrency, MAX_THREADS)), "llenvs-environment")

    async def reset(self, task_index: int, seed: int) -> State[Any]:
        """The first state of a task."""
        options = {"task_index": task_index}
        if self._native_reset:
            return (await self._environment.areset(seed=seed, options=options))[0]
        return (await self._call(functools.partial(self._environment.reset, seed=seed, options=options)))[0]

    async def step(self, state: State[Any], action: Action) -> StepResult:
        """One step."""
        if self._native_step:
            return await self._environment.astep(state, action)
        return await self._call(functools.partial(self._environment.step, state, action))

    async def call(self, function: Callable[[], T]) -> T:
        """``function()`` in one of the threads."""
        return await self._call(function)

    async def _call(self, function: Callable[[], T]) -> T:
        return await self._threads.call(functools.partial(self._contained, function))

    def _contained(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except BaseException as error:
            # In the event loop these would mean: end the loop, nothing (and a hang), the run is cancelled. Ctrl-C
            # is none of them, for it is raised in the main thread.
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            raise UpstreamFailed(self._environment.spec.id, "running a trajectory", error) from error
