"""Rolls out a model in an environment."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any, NamedTuple

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange
from llenvs.core.message import ChatMessage
from llenvs.core.registry import make
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.trajectory import Trajectory
from llenvs.evaluation.conversation import Conversation
from llenvs.evaluation.environment_threads import EnvironmentThreads
from llenvs.evaluation.outcome import Outcome
from llenvs.evaluation.prompting import prompt_builder
from llenvs.evaluation.rollout import Rollout, RolloutError
from llenvs.evaluation.scheduler import run_bounded
from llenvs.evaluation.seeds import derive_seed
from llenvs.inference.backend import Backend
from llenvs.inference.errors import BackendError
from llenvs.inference.loop import run_sync
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams


class Attempt(NamedTuple):
    """One attempt at one task."""

    task_index: int
    repeat: int = 0


class TrajectoryRunner:
    """Runs trajectories of one environment with one backend.

    Args:
        environment: an environment, or its address ``adapter/name``.
        backend: the model.
        sampling_params: how to sample. Its seed, if any, takes the place of `seed` for the requests.
        system_prompt: a name, a text or a mapping (`llenvs.inference.prompts.make_system_prompt`).
        prompt: a whole prompt (`llenvs.inference.prompts.make_prompt`).
        max_steps: end an episode after so many actions, if it has not ended by itself; >= 1.
        seed: each request and each reset gets a seed derived from this one, the task, the attempt and the turn,
            so a run can be repeated (requests only where the backend takes seeds).
        batch_size: trajectories in flight at once; None for ``backend.max_concurrency``.
        trajectory_timeout: seconds after which a trajectory is given up as an error; None for no limit.

    An error in a trajectory is part of its `Rollout`. Raised are only a *fatal* `BackendError` (every other
    request would fail alike: wrong key, unknown model) and mistakes in the arguments.
    """

    def __init__(
        self,
        environment: Environment[Any] | str,
        backend: Backend,
        *,
        sampling_params: SamplingParams | None = None,
        system_prompt: Any = None,
        prompt: Any = None,
        max_steps: int | None = None,
        seed: int = 0,
        batch_size: int | None = None,
        trajectory_timeout: float | None = None,
    ) -> None:
        if not isinstance(backend, Backend):
            raise InvalidOption("backend", backend, "must be a Backend; make one with make_backend(name, ...)")
        self.environment = make(environment) if isinstance(environment, str) else environment
        if not isinstance(self.environment, Environment):
            raise InvalidOption("environment", environment, 'must be an Environment or "adapter/name"')
        if type(self) is TrajectoryRunner and isinstance(self.environment, SegmentedEnvironment):
            problem = "takes responses segment by segment; use SegmentedTrajectoryRunner"
            raise InvalidOption("environment", self.environment, problem)
        for name, value in {"max_steps": max_steps, "batch_size": batch_size}.items():
            if value is not None and value < 1:
                raise InvalidOption(name, value, "must be at least 1")
        self.backend = backend
        self.builder = prompt_builder(backend.model, system_prompt, prompt)
        self.sampling = sampling_params or SamplingParams()
        self.max_steps = max_steps
        self.seed = seed
        self.batch_size = batch_size or backend.max_concurrency
        self.trajectory_timeout = trajectory_timeout
        self._threads = EnvironmentThreads(self.environment, self.batch_size)

    # -- one ----------------------------------------------------------------------------------------------

    def run_trajectory(self, task_index: int, *, repeat: int = 0, start: Trajectory | None = None) -> Rollout:
        """`arun_trajectory` for code without a loop; also inside a running one."""
        return run_sync(self.arun_trajectory(task_index, repeat=repeat, start=start))

    async def arun_trajectory(
        self, task_index: int, *, repeat: int = 0, start: Trajectory | None = None
    ) -> Rollout:
        """Roll out one task.

        Args:
            task_index: ``0 <= i < len(environment)``.
            repeat: number of the attempt; other numbers, other seeds.
            start: go on from the end of this trajectory instead of resetting (a branch of a search).

        Raises:
            TaskIndexOutOfRange: before anything runs.
            BackendError: a fatal one.
        """
        return await self._run(Attempt(self._checked(task_index), repeat), start)

    # -- many ---------------------------------------------------------------------------------------------

    def run_batch(self, task_indices: Iterable[int], *, repeats: int = 1) -> list[Rollout]:
        """`arun_batch` for code without a loop; also inside a running one."""
        return run_sync(self.arun_batch(task_indices, repeats=repeats))

    async def arun_batch(self, task_indices: Iterable[int], *, repeats: int = 1) -> list[Rollout]:
        """Roll out tasks at once, at most `batch_size` in flight.

        Returns:
            ``len(task_indices) * repeats`` rollouts in the order given, the attempts at a task side by side.

        Raises:
            TaskIndexOutOfRange: before anything runs.
            BackendError: a fatal one.
        """
        attempts = list(self._attempts([self._checked(i) for i in task_indices], repeats))

        async def run(numbered: tuple[int, Attempt]) -> tuple[int, Rollout]:
            return numbered[0], await self._run(numbered[1])

        done: list[Rollout | None] = [None] * len(attempts)
        async with aclosing(run_bounded(enumerate(attempts), run, self.batch_size)) as outcomes:
            async for position, rollout in outcomes:
                done[position] = rollout
        return [rollout for rollout in done if rollout is not None]

    async def stream(self, task_indices: Iterable[int], *, repeats: int = 1) -> AsyncGenerator[Rollout, None]:
        """Rollouts as they end, in flat memory: `task_indices` may be endless and is drawn as there is room."""
        attempts = self._attempts((self._checked(i) for i in task_indices), repeats)
        async with aclosing(run_bounded(attempts, self._run, self.batch_size)) as outcomes:
            async for rollout in outcomes:
                yield rollout

    # -- the rest -----------------------------------------------------------------------------------------

    def request_seed(self, task_index: int, repeat: int, turn: int) -> int | None:
        """The seed of a request; None when the backend takes none."""
        if not self.backend.capabilities.seed:
            return None
        base = self.seed if self.sampling.seed is None else self.sampling.seed
        return derive_seed(base, "request", task_index, repeat, turn)

    def reset_seed(self, task_index: int, repeat: int) -> int:
        """What the environment is reset with."""
        return derive_seed(self.seed, "reset", task_index, repeat)

    async def run_attempt(self, attempt: Attempt) -> Rollout:
        """One attempt whose task index is known to be in range."""
        return await self._run(attempt)

    async def _run(self, attempt: Attempt, start: Trajectory | None = None) -> Rollout:
        return await self._play(Episode(self, attempt, start))

    async def _play(self, episode: Episode) -> Rollout:
        """The rollout that `episode` is once it is played; errors in it are part of the rollout."""
        began = time.perf_counter()
        error: RolloutError | None = None
        success: bool | None = None
        deadline = asyncio.timeout(self.trajectory_timeout)
        try:
            async with deadline:
                await episode.play()
            outcome = episode.outcome()
            success = outcome.success
            if outcome.failure is not None:
                raise outcome.failure
        except TimeoutError as caught:
            own = f"not finished after trajectory_timeout={self.trajectory_timeout} seconds"
            error = RolloutError("TimeoutError", own if deadline.expired() else str(caught))
        except BackendError as caught:
            if caught.fatal:
                raise
            error = RolloutError.of(caught)
        except asyncio.CancelledError as caught:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # the run is being stopped; else a backend or environment raised it by itself
            error = RolloutError.of(caught)
        except (Exception, SystemExit) as caught:  # noqa: BLE001 - whatever they raise, the rollout says it
            error = RolloutError.of(caught)
        return episode.rollout(success, error, time.perf_counter() - began)

    def _attempts(self, task_indices: Iterable[int], repeats: int) -> Iterator[Attempt]:
        if repeats < 1:
            raise InvalidOption("repeats", repeats, "must be at least 1")
        return (Attempt(index, repeat) for index in task_indices for repeat in range(repeats))

    def _checked(self, task_index: int) -> int:
        size = len(self.environment)
        try:
            index = operator.index(task_index)
        except TypeError:
            raise InvalidOption("task_index", task_index, "must be an integer") from None
        if not 0 <= index < size:
            raise TaskIndexOutOfRange(task_index, size, self.environment.spec.id)
        return index


class Episode:
    """One episode being played. What is done stays readable when it breaks off."""

    def __init__(self, runner: TrajectoryRunner, attempt: Attempt, start: Trajectory | None = None) -> None:
        self.runner = runner
        self.attempt = attempt
        self.seed = runner.reset_seed(attempt.task_index, attempt.repeat)
        self.trajectory = start
        self.requests: list[tuple[ChatMessage, ...]] = []
        self.cut_off = False

    def outcome(self) -> Outcome:
        """What the signals of the steps taken so far amount to."""
        taken = () if self.trajectory is None else self.trajectory
        return Outcome.of(self.runner.environment.spec, (transition.rewards for transition in taken))

    def rollout(self, success: bool | None, error: RolloutError | None, seconds: float) -> Rollout:
        """What came of it, with how it ended."""
        trajectory = self.trajectory
        return Rollout(
            self.attempt.task_index,
            self.attempt.repeat,
            self.seed,
            trajectory,
            tuple(self.requests),
            success,
            self.outcome().signals,
            error,
            seconds,
            self.cut_off,
        )

    async def play(self) -> None:
        """Reset, unless it begins with a trajectory, and act until the episode ends."""
        runner, threads = self.runner, self.runner._threads
        if self.trajectory is None:
            self.trajectory = Trajectory(await threads.reset(self.attempt.task_index, self.seed))
        conversation = Conversation.of(self.trajectory, runner.builder)
        prefix = runner.builder.assistant_prefix or ""
        while not self.trajectory.done:
            turn = len(self.trajectory)
            if runner.max_steps is not None and turn >= runner.max_steps:
                self.cut_off = True
                return
            messages = conversation.messages()
            seed = runner.request_seed(*self.attempt, turn)
            sampling = runner.sampling.with_seed(seed)
            request = GenerationRequest(messages, sampling, conversation.tools, prefix=prefix)
            generation = await runner.backend.generate(request)
            self.requests.append(messages)
            action = conversation.action_of(generation, prefix)
            result = await threads.step(self.trajectory.final_state, action)
            self.trajectory = self.trajectory.append(action, result, generation)
            conversation.act(action, generation)
            if not self.trajectory.done:
                conversation.observe(result.next_state.observation)
