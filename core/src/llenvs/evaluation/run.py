"""A run: trajectories of one or more environments under one concurrency limit, recorded as they end."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llenvs.core.errors import EncodingFailed, LLEnvsError
from llenvs.evaluation.interruption import TooManyErrors, resume_hint
from llenvs.evaluation.loggers import Progress, RunLogger, RunStart, TrajectoryReport
from llenvs.evaluation.metrics import Metrics
from llenvs.evaluation.record import Outcome, make_record
from llenvs.evaluation.result import RunResult
from llenvs.evaluation.rollout import Rollout, RolloutError
from llenvs.evaluation.run_folder import RunFolder
from llenvs.evaluation.runner import Attempt, TrajectoryRunner
from llenvs.evaluation.scheduler import run_bounded

OnTrajectory = Callable[[str, Rollout], None]
"""Called with the environment's label and each rollout as it ends."""


@dataclass(frozen=True)
class PlannedEnvironment:
    """What to run in one environment."""

    label: str
    runner: TrajectoryRunner
    task_indices: Sequence[int]
    repeats: int


class EvaluationRun:
    """One run, to be executed once.

    Args:
        planned: the environments; they share `batch_size`, and the first trajectories of one begin while the
            last ones of the one before still run.
        batch_size: trajectories in flight.
        folder: where it is recorded, open; None to record nothing.
        loggers: who hears of it.
        config: the resolved configuration.
        save_states, retry_errors, max_errors: see `llenvs.evaluation.EvaluationConfig`.
        on_trajectory: called with label and rollout as each ends.
        notices: to be told at the beginning.
    """

    def __init__(
        self,
        planned: Sequence[PlannedEnvironment],
        *,
        batch_size: int,
        folder: RunFolder | None = None,
        loggers: Sequence[RunLogger] = (),
        config: Mapping[str, Any] | None = None,
        save_states: bool = False,
        retry_errors: bool = True,
        max_errors: int | None = None,
        on_trajectory: OnTrajectory | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        self._planned = planned
        self._batch_size = batch_size
        self._folder = folder
        self._loggers = _Loggers(loggers)
        self._config = config or {}
        self._save_states = save_states
        self._retry_errors = retry_errors
        self._max_errors = max_errors
        self._on_trajectory = on_trajectory
        self._notices = notices
        self._backend = planned[0].runner.backend
        self._metrics = {
            each.label: Metrics(each.label, self._backend.model, each.task_indices, each.repeats)
            for each in planned
        }
        self._session_tokens = dict.fromkeys(self._metrics, 0)
        self._session_done = 0
        self._session_errors = 0
        self._reward_sum = 0.0
        self._began = time.perf_counter()

    @property
    def total(self) -> int:
        """Trajectories asked for."""
        return sum(len(metrics.slots) for metrics in self._metrics.values())

    @property
    def done(self) -> int:
        """Trajectories ended."""
        return sum(metrics.done for metrics in self._metrics.values())

    @property
    def output_dir(self) -> Path | None:
        """The run folder, if there is one."""
        return None if self._folder is None else self._folder.path

    async def execute(self) -> RunResult:
        """Run what has not ended yet.

        Whatever stops it (a fatal backend error, `TooManyErrors`, cancellation), all trajectories that ended are
        recorded and the summary is written.
        """
        try:
            if self._folder is not None:
                await asyncio.to_thread(self._read_folder)
            self._began = time.perf_counter()
            self._reward_sum = sum(metrics.reward_sum.value for metrics in self._metrics.values())
            self._loggers.start(self._start())
            for notice in self._notices:
                self._loggers.notice(notice)
            if self.done < self.total:
                await self._backend.check()
                async with aclosing(run_bounded(self._attempts(), self._one, self._batch_size)) as attempts:
                    async for _ in attempts:
                        pass
            return self._finish(await asyncio.to_thread(self.result))
        except BaseException as error:
            self._stopped(error)
            raise
        finally:
            self._loggers.close()
            if self._folder is not None:
                self._folder.close()

    def _read_folder(self) -> None:
        assert self._folder is not None

        def retry(outcome: Outcome) -> bool:
            metrics = self._metrics.get(outcome.environment)
            if not self._retry_errors or outcome.error is None or metrics is None:
                return False
            return metrics.slots.find(outcome.task_index, outcome.repeat) is not None

        for outcome in self._folder.outcomes(retry=retry):
            metrics = self._metrics.get(outcome.environment)
            if metrics is not None:
                metrics.add(outcome)

    def _start(self) -> RunStart:
        return RunStart(
            tuple(self._metrics),
            self._backend.model,
            self.total,
            self.done,
            self.output_dir,
            self._config,
        )

    def _attempts(self) -> Iterator[tuple[PlannedEnvironment, Attempt]]:
        for each in self._planned:
            metrics = self._metrics[each.label]
            for task_index in each.task_indices:
                for repeat in range(each.repeats):
                    if metrics.is_open(task_index, repeat):
                        yield each, Attempt(task_index, repeat)

    async def _one(self, job: tuple[PlannedEnvironment, Attempt]) -> None:
        planned, attempt = job
        rollout = await planned.runner.run_attempt(attempt)
        # Recorded here, not by whoever reads the outcomes: a stop in between must not lose what was paid for.
        self._ended(planned.label, rollout)

    def _ended(self, label: str, rollout: Rollout) -> None:
        if self._folder is not None:
            rollout, record = self._record(label, rollout)
            self._folder.append(record)
        outcome = Outcome.of(label, rollout)
        self._metrics[label].add(outcome)
        tokens = outcome.usage.completion_tokens
        self._session_tokens[label] += tokens
        self._session_done += 1
        if rollout.error is None:
            self._reward_sum += outcome.reward
        else:
            self._session_errors += 1
        if self._loggers:
            report = TrajectoryReport(
                label,
                rollout.task_index,
                rollout.repeat,
                rollout.success,
                outcome.reward,
                rollout.seconds,
                tokens,
                outcome.num_turns,
                None if rollout.error is None else str(rollout.error),
            )
            self._loggers.trajectory(report, self.progress())
        if self._on_trajectory is not None:
            self._on_trajectory(label, rollout)
        if rollout.error is not None and self._max_errors is not None and self._session_errors > self._max_errors:
            raise TooManyErrors(self._session_errors, self._max_errors, str(rollout.error), self.output_dir)

    def _record(self, label: str, rollout: Rollout) -> tuple[Rollout, dict[str, Any]]:
        """`rollout` and its record; one whose states have no exact form is an error of its environment."""
        try:
            return rollout, make_record(label, rollout, exact=self._save_states)
        except EncodingFailed as error:
            rollout = replace(rollout, success=None, error=RolloutError.of(error))
            return rollout, make_record(label, rollout, exact=False)

    def progress(self) -> Progress:
        """Where the run stands."""
        every = self._metrics.values()
        errors = sum(metrics.num_errors for metrics in every)
        done = self.done
        return Progress(
            done,
            self.total,
            errors,
            sum(metrics.judged for metrics in every),
            sum(metrics.successes for metrics in every),
            self._reward_sum / (done - errors) if done > errors else None,
            self._session_done,
            sum(self._session_tokens.values()),
            time.perf_counter() - self._began,
        )

    def result(self) -> RunResult:
        """The figures so far."""
        wall = time.perf_counter() - self._began
        path = self.output_dir
        figures = {
            label: metrics.result(wall_seconds=wall, session_tokens=self._session_tokens[label], output_dir=path)
            for label, metrics in self._metrics.items()
        }
        return RunResult(figures, wall, path)

    def _finish(self, result: RunResult) -> RunResult:
        if self._folder is not None:
            self._folder.write_summary(result.to_dict())
        self._loggers.finish(result)
        return result

    def _stopped(self, error: BaseException) -> None:
        if not self._session_done:
            return
        # whoever interrupted it, or set max_errors, is told by the exception
        if not isinstance(error, asyncio.CancelledError | TooManyErrors):
            state = f"stopped by {type(error).__name__} after {self.done} of {self.total} trajectories"
            self._loggers.notice(f"{state}; {resume_hint(self.output_dir)}")
        self._finish(self.result())


class _Loggers:
    """All loggers as one; one that fails is left out from then on."""

    def __init__(self, loggers: Sequence[RunLogger]) -> None:
        self._loggers = list(loggers)

    def __bool__(self) -> bool:
        return bool(self._loggers)

    def start(self, run: RunStart) -> None:
        self._each(lambda logger: logger.start(run), required=True)

    def trajectory(self, report: TrajectoryReport, progress: Progress) -> None:
        self._each(lambda logger: logger.trajectory(report, progress))

    def notice(self, message: str) -> None:
        self._each(lambda logger: logger.notice(message))

    def finish(self, result: RunResult) -> None:
        self._each(lambda logger: logger.finish(result))

    def close(self) -> None:
        self._each(lambda logger: logger.close())
        self._loggers = []

    def _each(self, call: Callable[[RunLogger], None], *, required: bool = False) -> None:
        for logger in tuple(self._loggers):
            try:
                call(logger)
            except LLEnvsError:
                if required:
                    raise
            except Exception as error:  # noqa: BLE001 - whatever a logger does, the run goes on
                self._loggers.remove(logger)
                warnings.warn(f"{type(logger).__name__} failed and is left out: {error}", stacklevel=2)
