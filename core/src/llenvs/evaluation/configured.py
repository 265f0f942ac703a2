"""Run a whole configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.evaluation.config import EvaluationConfig
from llenvs.evaluation.interruption import run_interruptibly
from llenvs.evaluation.loggers import LogSpec, RunLogger, make_loggers
from llenvs.evaluation.prepare import PreparedEnvironment, PreparedRun, prepare_run
from llenvs.evaluation.resolved import resolved_amount, resolved_environment, resolved_model, without_secrets
from llenvs.evaluation.result import RunResult
from llenvs.evaluation.run import EvaluationRun, OnTrajectory, PlannedEnvironment
from llenvs.evaluation.run_folder import open_run_folder
from llenvs.evaluation.runner import TrajectoryRunner
from llenvs.evaluation.segmented_runner import runner_for
from llenvs.inference.backend import Backend


def run_config(
    config: EvaluationConfig | PreparedRun | str | Path | Mapping[str, Any],
    *,
    resume: bool = True,
    log: LogSpec = None,
    on_trajectory: OnTrajectory | None = None,
) -> RunResult:
    """Run a whole configuration. Also works inside a running event loop (a notebook).

    Args:
        config: a configuration, what `load_config` takes, or what `prepare_run` gave (which is not closed).
        resume: go on with what the run folder holds; False refuses a folder that holds a run.
        log: takes the place of ``config.log``.
        on_trajectory: called with label and `Rollout` as each ends, on the event loop: keep it short.

    Raises:
        ConfigError: with file, line and field.
        BackendError, RunFolderError, TooManyErrors, EvaluationInterrupted: as `run_evaluation`.
    """
    own = not isinstance(config, PreparedRun)
    prepared = config if isinstance(config, PreparedRun) else prepare_run(config)
    try:
        return run_interruptibly(_ConfiguredRun(prepared, resume=resume, log=log, on_trajectory=on_trajectory))
    finally:
        if own:
            prepared.close()


async def arun_config(
    config: EvaluationConfig | PreparedRun | str | Path | Mapping[str, Any],
    *,
    resume: bool = True,
    log: LogSpec = None,
    on_trajectory: OnTrajectory | None = None,
) -> RunResult:
    """`run_config` for async code. Cancelled, it keeps what is done and lets the cancellation through."""
    own = not isinstance(config, PreparedRun)
    prepared = config if isinstance(config, PreparedRun) else await asyncio.to_thread(prepare_run, config)
    try:
        return await _ConfiguredRun(prepared, resume=resume, log=log, on_trajectory=on_trajectory).execute()
    finally:
        if own:
            await asyncio.to_thread(prepared.close)


class _ConfiguredRun:
    """A prepared configuration, and the run that comes of it."""

    def __init__(
        self, prepared: PreparedRun, *, resume: bool, log: LogSpec, on_trajectory: OnTrajectory | None
    ) -> None:
        self.prepared, self.resume, self.log, self.on_trajectory = prepared, resume, log, on_trajectory
        self.run: EvaluationRun | None = None

    async def execute(self) -> RunResult:
        loggers = make_loggers(self.prepared.config.log if self.log is None else self.log)
        self.run = await asyncio.to_thread(self._plan, loggers)
        return await self.run.execute()

    def _plan(self, loggers: Sequence[RunLogger]) -> EvaluationRun:
        prepared, settings = self.prepared, self.prepared.config
        backend = prepared.backend
        if backend is None:
            raise InvalidOption("config", "a run prepared without its backend", "cannot run; prepare it with one")
        batch_size = settings.batch_size or backend.max_concurrency
        planned = [
            PlannedEnvironment(
                each.label, self._runner(each, backend, batch_size), each.task_indices, each.repeats
            )
            for each in prepared.environments
        ]
        config = {
            "environments": [_resolved(each) for each in prepared.environments],
            "model": resolved_model(backend, prepared.sampling, prepared.backend_options),
            "seed": settings.seed,
            "batch_size": batch_size,
            "log": list(settings.log),
            "save_states": settings.save_states,
            "retry_errors": settings.retry_errors,
            "max_errors": settings.max_errors,
            "trajectory_timeout": settings.trajectory_timeout,
        }
        made_with = [backend, *(each.environment for each in prepared.environments)]
        return EvaluationRun(
            planned,
            batch_size=batch_size,
            folder=open_run_folder(settings.output_dir, config, made_with, resume=self.resume),
            loggers=loggers,
            config=config,
            save_states=settings.save_states,
            retry_errors=settings.retry_errors,
            max_errors=settings.max_errors,
            on_trajectory=self.on_trajectory,
            notices=prepared.notices,
        )

    def _runner(self, each: PreparedEnvironment, backend: Backend, batch_size: int) -> TrajectoryRunner:
        return runner_for(
            each.environment,
            backend,
            sampling_params=self.prepared.sampling,
            prompt=each.prompt_builder,
            max_steps=each.max_steps,
            seed=self.prepared.config.seed,
            batch_size=batch_size,
            trajectory_timeout=self.prepared.config.trajectory_timeout,
        )


def _resolved(each: PreparedEnvironment) -> dict[str, Any]:
    return {
        **resolved_environment(each.environment, each.label, each.prompt_builder, each.max_steps),
        "options": without_secrets(each.options),
        **({} if each.segmentation is None else {"segmentation": without_secrets(each.segmentation)}),
        **resolved_amount(each.task_indices, each.repeats),
    }
