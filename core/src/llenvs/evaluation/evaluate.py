"""Evaluate a model in an environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.evaluation.environment_building import build_environment, format_mismatch
from llenvs.evaluation.interruption import run_interruptibly
from llenvs.evaluation.loggers import LogSpec, RunLogger, make_loggers
from llenvs.evaluation.prepare import choose_tasks
from llenvs.evaluation.prompting import prompt_builder
from llenvs.evaluation.resolved import resolved_amount, resolved_environment, resolved_model
from llenvs.evaluation.result import EvaluationResult
from llenvs.evaluation.rollout import Rollout
from llenvs.evaluation.run import EvaluationRun, PlannedEnvironment
from llenvs.evaluation.run_folder import open_run_folder
from llenvs.evaluation.runner import TrajectoryRunner
from llenvs.evaluation.segmented_decisions import StepCallback
from llenvs.evaluation.segmented_runner import runner_for
from llenvs.inference.backend import Backend
from llenvs.inference.prompts import PromptBuilder
from llenvs.inference.sampling import SamplingParams


def run_evaluation(
    environment: Environment[Any] | str,
    backend: Backend,
    *,
    num_tasks: int | None = None,
    task_indices: Sequence[int] | None = None,
    repeats: int = 1,
    sampling_params: SamplingParams | None = None,
    system_prompt: Any = None,
    prompt: Any = None,
    batch_size: int | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    output_dir: str | Path | None = None,
    resume: bool = True,
    log: LogSpec = ("console",),
    save_states: bool = False,
    retry_errors: bool = True,
    max_errors: int | None = None,
    trajectory_timeout: float | None = None,
    on_trajectory: Callable[[Rollout], None] | None = None,
    step_callback: StepCallback | None = None,
) -> EvaluationResult:
    """Evaluate a model in an environment. Also works inside a running event loop (a notebook).

    Args:
        environment: an environment, or its address ``adapter/name``.
        backend: the model; it is not closed.
        num_tasks: evaluate the first so many tasks; None for all.
        task_indices: evaluate these tasks instead.
        repeats: attempts at each task, >= 1; more than one gives pass@k.
        sampling_params: how to sample.
        system_prompt: a name, a text or a mapping (`llenvs.inference.prompts.make_system_prompt`).
        prompt: a whole prompt (`llenvs.inference.prompts.make_prompt`).
        batch_size: trajectories in flight at once; None for ``backend.max_concurrency``.
        max_steps: end an episode after so many actions, if it has not ended by itself.
        seed: of every request and reset a seed is derived from it.
        output_dir: the run folder; None keeps nothing on disk.
        resume: go on with what `output_dir` holds; False refuses a folder that holds a run.
        log: "console", "file", "wandb", or loggers; () for silence.
        save_states: write every trajectory exactly beside its readable record.
        retry_errors: try trajectories again that ended in an error in an earlier session.
        max_errors: stop when more trajectories than this ended in an error.
        trajectory_timeout: seconds after which a trajectory is given up as an error.
        on_trajectory: called with each `Rollout` as it ends, on the event loop: keep it short.
        step_callback: for a `SegmentedEnvironment`: called after each segment, decides how to go on
            (`llenvs.evaluation.StepCallback`).

    Returns:
        The figures. Trajectories are not kept in memory: read them with ``result.trajectories()``.

    Raises:
        BackendError: a fatal one (wrong key, unknown model), or the model cannot be reached at the start.
        RunFolderError: `output_dir` is taken, damaged, or of another configuration.
        TooManyErrors: see `max_errors`.
        EvaluationInterrupted: Ctrl-C; what is done is kept.
        LLEnvsError: an argument is wrong.
    """
    return run_interruptibly(_Evaluation(**locals()))


async def arun_evaluation(
    environment: Environment[Any] | str,
    backend: Backend,
    *,
    num_tasks: int | None = None,
    task_indices: Sequence[int] | None = None,
    repeats: int = 1,
    sampling_params: SamplingParams | None = None,
    system_prompt: Any = None,
    prompt: Any = None,
    batch_size: int | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    output_dir: str | Path | None = None,
    resume: bool = True,
    log: LogSpec = ("console",),
    save_states: bool = False,
    retry_errors: bool = True,
    max_errors: int | None = None,
    trajectory_timeout: float | None = None,
    on_trajectory: Callable[[Rollout], None] | None = None,
    step_callback: StepCallback | None = None,
) -> EvaluationResult:
    """`run_evaluation` for async code. Cancelled, it keeps what is done and lets the cancellation through."""
    return await _Evaluation(**locals()).execute()


@dataclass
class _Evaluation:
    """The arguments of `run_evaluation`, and the run that comes of them."""

    environment: Environment[Any] | str
    backend: Backend
    _: KW_ONLY
    num_tasks: int | None
    task_indices: Sequence[int] | None
    repeats: int
    sampling_params: SamplingParams | None
    system_prompt: Any
    prompt: Any
    batch_size: int | None
    max_steps: int | None
    seed: int
    output_dir: str | Path | None
    resume: bool
    log: LogSpec
    save_states: bool
    retry_errors: bool
    max_errors: int | None
    trajectory_timeout: float | None
    on_trajectory: Callable[[Rollout], None] | None
    step_callback: StepCallback | None
    run: EvaluationRun | None = None

    async def execute(self) -> EvaluationResult:
        if not isinstance(self.backend, Backend):
            raise InvalidOption(
                "backend", self.backend, "must be a Backend; make one with make_backend(name, ...)"
            )
        builder = prompt_builder(self.backend.model, self.system_prompt, self.prompt)
        own = isinstance(self.environment, str)
        environment = await asyncio.to_thread(self._environment, builder)
        try:
            loggers = make_loggers(self.log)
            self.run = await asyncio.to_thread(self._plan, environment, builder, loggers)
            (result,) = (await self.run.execute()).environments.values()
            return result
        finally:
            if own:
                await environment.aclose()

    def _environment(self, builder: PromptBuilder) -> Environment[Any]:
        if isinstance(self.environment, str):
            return build_environment(self.environment, None, {}, builder)[0]
        return self.environment

    def _runner(self, environment: Environment[Any], builder: PromptBuilder) -> TrajectoryRunner:
        return runner_for(
            environment,
            self.backend,
            step_callback=self.step_callback,
            sampling_params=self.sampling_params,
            prompt=builder,
            max_steps=self.max_steps,
            seed=self.seed,
            batch_size=self.batch_size,
            trajectory_timeout=self.trajectory_timeout,
        )

    def _plan(
        self, environment: Environment[Any], builder: PromptBuilder, loggers: Sequence[RunLogger]
    ) -> EvaluationRun:
        runner = self._runner(environment, builder)
        if isinstance(self.repeats, bool) or self.repeats < 1:
            raise InvalidOption("repeats", self.repeats, "must be at least 1")
        tasks = choose_tasks(environment, self.num_tasks, self.task_indices)
        label = environment.spec.id
        mismatch = format_mismatch(environment, builder)
        on_trajectory = self.on_trajectory
        config = {
            "environments": [
                {
                    **resolved_environment(environment, label, builder, self.max_steps),
                    **resolved_amount(tasks, self.repeats),
                }
            ],
            "model": resolved_model(self.backend, runner.sampling),
            "seed": self.seed,
            "batch_size": runner.batch_size,
            "save_states": self.save_states,
            "retry_errors": self.retry_errors,
            "max_errors": self.max_errors,
            "trajectory_timeout": self.trajectory_timeout,
        }
        if self.step_callback is not None:
            config["step_callback"] = getattr(
                self.step_callback, "__qualname__", type(self.step_callback).__name__
            )
        return EvaluationRun(
            [PlannedEnvironment(label, runner, tasks, self.repeats)],
            batch_size=runner.batch_size,
            folder=open_run_folder(self.output_dir, config, [environment, self.backend], resume=self.resume),
            loggers=loggers,
            config=config,
            save_states=self.save_states,
            retry_errors=self.retry_errors,
            max_errors=self.max_errors,
            on_trajectory=None if on_trajectory is None else lambda label, rollout: on_trajectory(rollout),
            notices=[] if mismatch is None else [mismatch],
        )
