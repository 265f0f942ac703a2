"""Rolls out a model in a segmented environment."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Usage
from llenvs.core.loop import PerLoop
from llenvs.core.segmentation.environment import SegmentedEnvironment, Step
from llenvs.core.segmentation.response import is_segmented
from llenvs.core.segmentation.segmenter import Segmenter
from llenvs.core.segmentation.sentence import SentenceSegmenter
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory, Transition
from llenvs.evaluation.environment_threads import MAX_THREADS, EnvironmentThreads
from llenvs.evaluation.rollout import Rollout
from llenvs.evaluation.runner import Attempt, TrajectoryRunner
from llenvs.evaluation.scheduler import run_bounded
from llenvs.evaluation.seeds import derive_seed
from llenvs.evaluation.segmented_decisions import StepCallback
from llenvs.evaluation.segmented_episode import SegmentedEpisode
from llenvs.evaluation.segmented_rollout import SegmentedRollout
from llenvs.evaluation.worker_threads import WorkerThreads
from llenvs.inference.backend import Backend
from llenvs.inference.loop import run_sync
from llenvs.inference.sampling import SamplingParams

Prefix = str | Trajectory | Iterable[Step]
"""How a rollout begins: the beginning of the first response, or steps to be replayed."""


class SegmentedTrajectoryRunner(TrajectoryRunner):
    """Generates responses segment by segment, and asks a callback after each how to go on.

    The model writes as far as it likes (or `chunk_tokens`); segments are cut off what it wrote, and only when the
    callback intervenes the rest is thrown away and a new request made. Without an intervention a rollout is, seed
    by seed, the one that `TrajectoryRunner` gives, in as many requests. Scheduler, seeds, errors, time limits and
    run folders are those of `TrajectoryRunner` and `run_evaluation`.

    A message is gone on with through the backend's assistant prefix. Where it takes none (``capabilities.prefix``
    of the backend, ``assistant_prefix`` of the model's profile) the model is shown its message, and asked in a
    user turn to continue it; repetitions at the beginning of what it answers are dropped, and
    ``rollout.continued_by_message`` says so.

    Args:
        environment: a `SegmentedEnvironment`; another one, or an address, is segmented by `segmenter`.
        backend: the model.
        step_callback: see `StepCallback`; None to go on always.
        segmenter: for an environment that is not segmented; None for sentences.
        chunk_tokens: tokens to ask for at a time while there is a callback; None for the whole response. Small
            chunks waste less where the callback often intervenes, but spell a message in several requests, whose
            tokens may differ from those of one. Without an assistant prefix there are no chunks: a response is
            asked for as a whole.
        max_branches: branches in one rollout at most, those of branches included.
        sampling_params: see `TrajectoryRunner`; ``max_tokens`` is for a whole response. Where the backend has
            logprobs, they are asked for also when this does not: they tell which tokens spell which segment.
        system_prompt: see `TrajectoryRunner`.
        prompt: see `TrajectoryRunner`.
        seed: see `TrajectoryRunner`.
        batch_size: see `TrajectoryRunner`.
        trajectory_timeout: see `TrajectoryRunner`.
        max_steps: end an episode after so many responses, if it has not ended by itself; >= 1.
    """

    environment: SegmentedEnvironment

    def __init__(
        self,
        environment: Environment[Any] | str,
        backend: Backend,
        *,
        step_callback: StepCallback | None = None,
        segmenter: Segmenter | None = None,
        chunk_tokens: int | None = None,
        max_branches: int = 256,
        sampling_params: SamplingParams | None = None,
        system_prompt: Any = None,
        prompt: Any = None,
        max_steps: int | None = None,
        seed: int = 0,
        batch_size: int | None = None,
        trajectory_timeout: float | None = None,
    ) -> None:
        super().__init__(
            environment,
            backend,
            sampling_params=sampling_params,
            system_prompt=system_prompt,
            prompt=prompt,
            max_steps=max_steps,
            seed=seed,
            batch_size=batch_size,
            trajectory_timeout=trajectory_timeout,
        )
        if not isinstance(self.environment, SegmentedEnvironment):
            self.environment = SegmentedEnvironment(self.environment, segmenter or SentenceSegmenter())
        elif segmenter is not None:
            raise InvalidOption("segmenter", segmenter, "the environment is segmented already")
        for name, value in {"chunk_tokens": chunk_tokens, "max_branches": max_branches}.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidOption(name, value, "must be a positive integer")
        if step_callback is not None and not callable(step_callback):
            raise InvalidOption("step_callback", step_callback, "must be a function of a SegmentStep")
        self.step_callback = step_callback
        self.chunk_tokens = chunk_tokens
        self.max_branches = max_branches
        self._threads = EnvironmentThreads(self.environment, self.batch_size)
        # others than the environment's: a callback may itself run trajectories and wait for them
        self._callback_threads = WorkerThreads(MAX_THREADS, "llenvs-callback")
        self._slots: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(self.batch_size))
        self._num_branches: Counter[Attempt] = Counter()

    # -- one ----------------------------------------------------------------------------------------------

    def run_trajectory(
        self,
        task_index: int,
        *,
        repeat: int = 0,
        start: Trajectory | None = None,
        prefix: Prefix | None = None,
        step_callback: StepCallback | None = None,
    ) -> SegmentedRollout:
        """`arun_trajectory` for code without a loop; also inside a running one."""
        return run_sync(
            self.arun_trajectory(
                task_index, repeat=repeat, start=start, prefix=prefix, step_callback=step_callback
            )
        )

    async def arun_trajectory(
        self,
        task_index: int,
        *,
        repeat: int = 0,
        start: Trajectory | None = None,
        prefix: Prefix | None = None,
        step_callback: StepCallback | None = None,
    ) -> SegmentedRollout:
        """Roll out one task.

        Args:
            task_index: ``0 <= i < len(environment)``.
            repeat: number of the attempt; other numbers, other seeds.
            start: go on from the end of this trajectory of the segmented environment instead of resetting.
            prefix: steps to be taken first: the beginning of the first response as text (what stands after its
                last whole segment becomes part of the next), or a trajectory or pairs of states and actions, of
                the segmented or the base environment, which are replayed and checked.
            step_callback: in place of the runner's own.

        Raises:
            TaskIndexOutOfRange, InvalidOption, ReplayDiverged: before anything is generated.
            BackendError: a fatal one.
        """
        attempt = Attempt(self._checked(task_index), repeat)
        runner = self._with(step_callback)
        given = ""
        if prefix is not None:
            if start is not None:
                raise InvalidOption("prefix", prefix, "cannot be given together with start")
            if not isinstance(prefix, str | Trajectory | Iterable) or isinstance(prefix, bytes):
                valid = "a text, a Trajectory, or pairs of states and actions"
                raise InvalidOption("prefix", prefix, "is no beginning of a rollout", valid=valid)
            start, given = await self._replayed(attempt, prefix)
        elif start is not None and not (isinstance(start, Trajectory) and is_segmented(start.initial_state)):
            problem = "must be a trajectory of the segmented environment; one of the base environment is a prefix"
            raise InvalidOption("start", start, problem)
        return await runner._rolled_out(attempt, start, given=given)

    async def _replayed(self, attempt: Attempt, prefix: Prefix) -> tuple[Trajectory, str]:
        env = self.environment
        reset_seed = self.reset_seed(*attempt)

        def replay() -> tuple[Trajectory, str]:
            if not isinstance(prefix, str):
                steps = prefix if isinstance(prefix, Trajectory) else list(prefix)
                first = _first_state(steps)
                if first is None:
                    first = env.reset(seed=reset_seed, options={"task_index": attempt.task_index})[0]
                return env.replay(first, steps).trajectory, ""
            state = env.reset(seed=reset_seed, options={"task_index": attempt.task_index})[0]
            settled = next(reversed(env.segmenter.boundaries(prefix, complete=False)), 0)
            return env.replay(state, prefix[:settled], end=False).trajectory, prefix[settled:]

        return await self._threads.call(replay)

    # -- many ---------------------------------------------------------------------------------------------

    def run_batch(  # type: ignore[override]  # a list of rollouts that are segmented
        self, task_indices: Iterable[int], *, repeats: int = 1, step_callback: StepCallback | None = None
    ) -> list[SegmentedRollout]:
        """`arun_batch` for code without a loop; also inside a running one."""
        return run_sync(self.arun_batch(task_indices, repeats=repeats, step_callback=step_callback))

    async def arun_batch(  # type: ignore[override]
        self, task_indices: Iterable[int], *, repeats: int = 1, step_callback: StepCallback | None = None
    ) -> list[SegmentedRollout]:
        """See `TrajectoryRunner.arun_batch`; `step_callback` takes the place of the runner's own."""
        rollouts = await TrajectoryRunner.arun_batch(self._with(step_callback), task_indices, repeats=repeats)
        return [rollout for rollout in rollouts if isinstance(rollout, SegmentedRollout)]

    def stream(
        self, task_indices: Iterable[int], *, repeats: int = 1, step_callback: StepCallback | None = None
    ) -> AsyncGenerator[SegmentedRollout, None]:
        """See `TrajectoryRunner.stream`; `step_callback` takes the place of the runner's own."""
        rollouts = TrajectoryRunner.stream(self._with(step_callback), task_indices, repeats=repeats)
        return cast("AsyncGenerator[SegmentedRollout, None]", rollouts)

    # -- the rest -----------------------------------------------------------------------------------------

    def request_sampling(self, attempt: Attempt, turn: int, part: int, branch: tuple[int, ...]) -> SamplingParams:
        """How request `part` of a response is sampled; the first one of the rollout itself as in any runner."""
        capabilities = self.backend.capabilities
        sampling = self.sampling
        if sampling.logprobs is None and capabilities.logprobs and capabilities.token_ids:
            sampling = sampling.model_copy(update={"logprobs": 0})
        seed = self.request_seed(*attempt, turn)
        if seed is not None and (part or branch):
            seed = derive_seed(seed, "part", part, "branch", *branch)
        return sampling.with_seed(seed)

    def request_slot(self) -> asyncio.Semaphore:
        """What a request holds: branches make more rollouts, but not more requests at once."""
        return self._slots.get()

    def count_branches(self, attempt: Attempt, count: int) -> None:
        """Count further branches of a rollout.

        Raises:
            InvalidOption: there are too many.
        """
        self._num_branches[attempt] += count
        if self._num_branches[attempt] > self.max_branches:
            raise InvalidOption(
                "max_branches",
                self.max_branches,
                f"a rollout of task {attempt.task_index} has more branches; let the callback look at step.branch",
            )

    async def _run(self, attempt: Attempt, start: Trajectory | None = None) -> Rollout:
        return await self._rolled_out(attempt, start)

    async def _rolled_out(
        self, attempt: Attempt, start: Trajectory | None, branch: tuple[int, ...] = (), given: str = ""
    ) -> SegmentedRollout:
        if not branch:
            self._num_branches.pop(attempt, None)
        episode = SegmentedEpisode(self, attempt, start, branch=branch, given=given)
        rollout = await self._play(episode)
        assert isinstance(rollout, SegmentedRollout)
        if not episode.branch_starts:
            return rollout

        async def run(begin: tuple[tuple[int, ...], Trajectory]) -> SegmentedRollout:
            return await self._rolled_out(attempt, begin[1], begin[0])

        async with aclosing(run_bounded(episode.branch_starts, run, self.batch_size)) as ended:
            branches = [each async for each in ended]
        branches.sort(key=lambda each: each.branch)
        paid = sum((each.usage for each in branches), rollout.paid or Usage())
        return replace(rollout, branches=tuple(branches), paid=paid)

    def _with(self, step_callback: StepCallback | None) -> SegmentedTrajectoryRunner:
        if step_callback is None:
            return self
        if not callable(step_callback):
            raise InvalidOption("step_callback", step_callback, "must be a function of a SegmentStep")
        runner = copy.copy(self)
        runner.step_callback = step_callback
        runner._num_branches = Counter()
        return runner


def runner_for(
    environment: Environment[Any], backend: Backend, *, step_callback: StepCallback | None = None, **options: Any
) -> TrajectoryRunner:
    """The runner for `environment`: by segments if it is segmented, else by whole responses.

    Args:
        environment: any.
        backend: the model.
        step_callback: for a segmented environment, see `StepCallback`.
        options: of both runners.

    Raises:
        InvalidOption: there is a callback and no segments, or as the runners.
    """
    if isinstance(environment, SegmentedEnvironment):
        return SegmentedTrajectoryRunner(environment, backend, step_callback=step_callback, **options)
    if step_callback is not None:
        raise InvalidOption("step_callback", step_callback, "needs a SegmentedEnvironment")
    return TrajectoryRunner(environment, backend, **options)


def _first_state(steps: Trajectory | list[Any]) -> State[Any] | None:
    if isinstance(steps, Trajectory):
        return steps.initial_state
    match steps[:1]:
        case [Transition(state=State() as first)] | [(State() as first, _)]:
            return first
    return None  # not known; what is no step at all, the replay says
