"""Rewards of finished responses, one by one or many at once, for trainers and for looking at models."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import EpisodeOver, InvalidAction, InvalidOption, TaskIndexOutOfRange
from llenvs.core.frozen_init import frozen_init
from llenvs.core.loop import run_sync
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.state import State
from llenvs.evaluation.environment_threads import EnvironmentThreads
from llenvs.evaluation.outcome import Outcome
from llenvs.evaluation.rollout import RolloutError
from llenvs.evaluation.worker_threads import WorkerThreads
from llenvs.integrations import checks
from llenvs.integrations.environment_user import EnvironmentUser, configured_environment, takes_one_response
from llenvs.integrations.task_identity import TaskIdentity, TaskMismatch, prompt_sha256

_KEPT_STARTS = 512  # first states kept: the completions of one prompt come together

Response = str | Action | Sequence[str | Action]
"""What a model did: the text of its answer, an action, or, of an episode of several turns, one of these a turn."""

_TRIAL = 0.005  # seconds after which a batch tells whether more threads would help

MISTAKES = (TaskMismatch, TaskIndexOutOfRange, InvalidOption, InvalidAction, EpisodeOver)
"""Exceptions that are the caller's doing, and no failure of the environment."""


@frozen_init
@dataclass(frozen=True, slots=True)
class ScoringResult:
    """What an environment says to a response.

    Attributes:
        reward: the total reward; None when it could not be computed (see `error`), which is no reward of 0.
        correct: success as the environment declares it; None when it declares none, or with `error`.
        signals: per signal the sum of its numbers over the steps.
        extracted_answer: what was understood of the last action, or None.
        feedback: the words of all signals, in order.
        error: why there is no reward, or None.
        metadata: ``steps`` (actions taken), ``done`` (whether the episode ended), ``task_index``, and the info of
            the last state.
        step_rewards: the reward of each step.
    """

    reward: float | None
    correct: bool | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    extracted_answer: str | None = None
    feedback: tuple[str, ...] = ()
    error: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    step_rewards: tuple[float, ...] = ()

    @property
    def total(self) -> float | None:
        """`reward` by the name it has in a `SignalBundle`."""
        return self.reward


class Scorer(EnvironmentUser):
    """Scores responses with an environment: `reset` and `step`, no second path.

    Args:
        env: an environment, or its address ``adapter/name``; then this object closes it.
        max_concurrency: scored at once in a batch, >= 1. An environment that computes in this process is given one
            thread whatever this says, since more would contend for the interpreter.
        timeout: seconds that one response may take, in batches and async; None for no limit. A scorer that hangs
            in this process goes on in its thread; to have it ended, isolate the environment
            (``container="process"``).
        seed: what episodes are reset with.
        options: of the environment, when `env` is an address.

    A failure of the environment is a `ScoringResult` with `error` and no reward. A mistake of the caller is
    raised: a task that does not exist (`TaskIndexOutOfRange`), a row of another task (`TaskMismatch`), a
    transcript that goes on after the end (`EpisodeOver`).
    """

    def __init__(
        self,
        env: Environment[Any] | str,
        *,
        max_concurrency: int = 8,
        timeout: float | None = None,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(env, options)
        self.max_concurrency = checks.whole("max_concurrency", max_concurrency, at_least=1)
        self.timeout = checks.seconds("timeout", timeout)
        self.seed = seed
        self._threads = EnvironmentThreads(self.env, max_concurrency)
        self._workers = WorkerThreads(max_concurrency, "llenvs-scorer")
        self._starts: OrderedDict[int, State[Any]] = OrderedDict()
        self._digests: dict[int, str] = {}  # of the prompts of `_starts`, as far as they were asked for
        self._lock = Lock()

    @classmethod
    def from_config(cls, config: Any, **options: Any) -> Scorer:
        """The scorer of one environment of a configuration (a mapping or an `EnvironmentConfig`).

        Args:
            config: as an entry of ``environments:`` in a YAML: ``name``, ``adapter``, ``container``, options.
            options: of the scorer.
        """
        environment, _ = configured_environment(config)
        scorer = cls(environment, **options)
        scorer._owned = True
        return scorer

    # -- one ----------------------------------------------------------------------------------------------

    def score(
        self, task_index: int = 0, response: Response = "", *, prompt_sha256: str | None = None
    ) -> ScoringResult:
        """Score one response.

        Args:
            task_index: ``0 <= i < len(env)``.
            response: the answer, or all actions of an episode of several turns, in order. A `SegmentedEnvironment`
                over one of a single turn divides the answer itself; a list holds segments.
            prompt_sha256: of the prompt that the response answers; checked against the task's.

        Raises:
            TaskMismatch: the task has another prompt.
            InvalidOption: `task_index` is no whole number; `response` is none, or one text for an environment of
                several turns.
        """
        task_index = checks.task_index(task_index)
        results: list[StepResult] = []
        try:
            state = self.first_state(task_index, prompt_sha256)
            for action in self._actions(response, state):
                results.append(self.env.step(state, action))
                state = results[-1].next_state
        except MISTAKES:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is a missing reward, no crash
            return self._failed(error, task_index)
        return self.result_of(results, state, task_index)

    async def ascore(
        self, task_index: int = 0, response: Response = "", *, prompt_sha256: str | None = None
    ) -> ScoringResult:
        """`score` in worker threads (or natively, where the environment is async), within `timeout`."""
        task_index = checks.task_index(task_index)
        results: list[StepResult] = []
        try:
            async with asyncio.timeout(self.timeout):
                state = await self.afirst_state(task_index, prompt_sha256)
                for action in self._actions(response, state):
                    results.append(await self.astep(state, action))
                    state = results[-1].next_state
        except MISTAKES:
            raise
        except TimeoutError:
            return self._failed(TimeoutError(f"no score within {self.timeout} s"), task_index)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see score
            return self._failed(error, task_index)
        return self.result_of(results, state, task_index)

    # -- many ---------------------------------------------------------------------------------------------

    def score_batch(
        self,
        task_indices: Iterable[int],
        responses: Iterable[Response],
        *,
        prompt_sha256s: Iterable[str | None] | None = None,
    ) -> list[ScoringResult]:
        """Score many responses, in their order; see `ascore_batch`."""
        rows = self._rows(task_indices, responses, prompt_sha256s)
        if self.max_concurrency == 1 and self.timeout is None:
            return [self.score(index, response, prompt_sha256=digest) for index, response, digest in rows]
        return run_sync(self._ascore_rows(rows))

    async def ascore_batch(
        self,
        task_indices: Iterable[int],
        responses: Iterable[Response],
        *,
        prompt_sha256s: Iterable[str | None] | None = None,
    ) -> list[ScoringResult]:
        """Score many responses, at most `max_concurrency` at once.

        Args:
            task_indices: of each response.
            responses: as many.
            prompt_sha256s: as many, or None: not checked.

        Raises:
            InvalidOption: they differ in number.
            TaskMismatch, TaskIndexOutOfRange: of the first row that is wrong.
        """
        return await self._ascore_rows(self._rows(task_indices, responses, prompt_sha256s))

    async def _ascore_rows(self, rows: Sequence[tuple[int, Response, str | None]]) -> list[ScoringResult]:
        results: list[ScoringResult | None] = [None] * len(rows)
        waiting = iter(range(len(rows)))  # shared by all workers: `next` of it is atomic
        kind = type(self.env)
        native = kind.astep is not Environment.astep or kind.areset is not Environment.areset

        def work(until: float = math.inf) -> bool:
            """Score what waits, for about `until` seconds; whether that time was mostly waiting for something."""
            wall, busy = time.perf_counter(), time.thread_time()
            for number in waiting:
                index, response, digest = rows[number]
                results[number] = self.score(index, response, prompt_sha256=digest)
                taken = time.perf_counter() - wall
                if taken > until:
                    return time.thread_time() - busy < 0.5 * taken
            return False

        async def awork() -> None:
            for number in waiting:
                index, response, digest = rows[number]
                results[number] = await self.ascore(index, response, prompt_sha256=digest)

        workers = min(self.max_concurrency, len(rows))
        try:
            if native or self.timeout is not None:
                await asyncio.gather(*(awork() for _ in range(workers)))
            elif workers and not await self._workers.call(lambda: work(until=_TRIAL)):
                await self._workers.call(work)  # it computes: more threads would only contend for the interpreter
            else:
                await asyncio.gather(*(self._workers.call(work) for _ in range(workers)))
        except BaseException:
            for _ in waiting:  # the other workers end with what they have at hand
                pass
            raise
        return [result for result in results if result is not None]

    def _rows(
        self,
        task_indices: Iterable[int],
        responses: Iterable[Response],
        digests: Iterable[str | None] | None,
    ) -> list[tuple[int, Response, str | None]]:
        indices, given = list(task_indices), list(responses)
        hashes = [None] * len(indices) if digests is None else list(digests)
        if not len(indices) == len(given) == len(hashes):
            raise InvalidOption(
                "responses",
                len(given),
                f"must be as many as task_indices ({len(indices)}) and prompt_sha256s ({len(hashes)})",
            )
        return list(zip(indices, given, hashes, strict=True))

    # -- the rest -----------------------------------------------------------------------------------------

    def score_identified(self, identity: TaskIdentity, response: Response) -> ScoringResult:
        """Score a row by its identity, its prompt checked."""
        return self.score(identity.task_index, response, prompt_sha256=identity.prompt_sha256)

    def _actions(self, response: Response, state: State[Any]) -> Sequence[Action]:
        if not isinstance(response, (str, Action)):
            return _listed(response)
        if self.env.spec.is_multi_turn:
            if isinstance(self.env, SegmentedEnvironment) and takes_one_response(self.env):
                return self.env.actions(state, response)
            raise InvalidOption(
                "response",
                response if isinstance(response, str) else response.text,
                f"{self.env.spec.id} has several turns, so one text is no episode",
                valid="the list of all actions of an episode; in a trainer use its agent hook "
                "(llenvs.integrations.trl, .verl, .openrlhf)",
            )
        return [Action(response) if isinstance(response, str) else response]

    # -- for loops that step by themselves ----------------------------------------------------------------

    def first_state(self, task_index: int, digest: str | None = None) -> State[Any]:
        """The first state of a task, whose prompt must have the SHA-256 `digest`, if that is given.

        Raises:
            TaskMismatch: it has another.
        """
        state = self._starts.get(task_index)
        if state is None:
            state, _ = self.env.reset(seed=self.seed, options={"task_index": task_index})
            self._keep(task_index, state)
        if digest is not None:
            self._check(digest, task_index, state)
        return state

    async def afirst_state(self, task_index: int, digest: str | None = None) -> State[Any]:
        """`first_state`, for callers with a loop."""
        state = self._starts.get(task_index)
        if state is None:
            state = await self._threads.reset(task_index, self.seed)
            self._keep(task_index, state)
        if digest is not None:
            self._check(digest, task_index, state)
        return state

    def _keep(self, task_index: int, state: State[Any]) -> None:
        with self._lock:
            self._starts[task_index] = state
            if len(self._starts) > _KEPT_STARTS:
                oldest, _ = self._starts.popitem(last=False)
                self._digests.pop(oldest, None)

    def _check(self, digest: str, task_index: int, state: State[Any]) -> None:
        known = self._digests.get(task_index)
        if known is None:
            known = prompt_sha256(state.observation)
            with self._lock:
                if task_index in self._starts:
                    self._digests[task_index] = known
        if digest != known:
            raise TaskMismatch(self.env.spec.id, task_index)

    def _failed(self, error: BaseException, task_index: int) -> ScoringResult:
        return ScoringResult(None, error=str(RolloutError.of(error)), metadata={"task_index": task_index})

    async def astep(self, state: State[Any], action: Action) -> StepResult:
        """A step in a worker thread, or natively, where the environment is async."""
        return await self._threads.step(state, action)

    def result_of(self, results: Sequence[StepResult], state: State[Any], task_index: int) -> ScoringResult:
        """The score of an episode, or of what there is of one.

        Args:
            results: of its steps, in order.
            state: after the last of them.
            task_index: of the task.
        """
        metadata = state.metadata
        info = {**metadata.info, "task_index": task_index, "steps": len(results), "done": metadata.is_terminal}
        outcome = Outcome.of(self.env.spec, [result.rewards for result in results])
        if outcome.failure is not None:  # a reward that is no number
            return ScoringResult(None, error=str(RolloutError.of(outcome.failure)), metadata=info)
        if outcome.missing is not None:
            said = f"signal {outcome.missing.name!r} could not be computed: {outcome.missing.metadata['error']}"
            return ScoringResult(None, error=said, metadata=info)
        resolved = results[-1].resolved_action if results else None
        return ScoringResult(
            math.fsum(outcome.step_rewards),
            outcome.success,
            outcome.signals,
            None if resolved is None else resolved.text,
            outcome.feedback,
            None,
            info,
            outcome.step_rewards,
        )


def _listed(response: Any) -> list[Action]:
    """The actions of an episode of several turns."""
    if isinstance(response, Sequence) and not isinstance(response, bytes | bytearray):
        actions = [Action(each) if isinstance(each, str) else each for each in response]
        if all(isinstance(each, Action) for each in actions):
            return actions
    raise InvalidOption("response", response, "is no text, Action, or list of these")
