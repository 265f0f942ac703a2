"""Runs in Weights & Biases."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from llenvs.core.errors import LLEnvsError, NotInstalled
from llenvs.evaluation.loggers.logger import Progress, RunLogger, RunStart, TrajectoryReport

if TYPE_CHECKING:
    from llenvs.evaluation.result import RunResult


class WandbUnavailable(LLEnvsError):
    """Weights & Biases does not take the run: no key, no network, a wrong project."""


class WandbLogger(RunLogger):
    """Logs running figures every `interval` seconds, and all figures at the end as the run's summary.

    Project, entity, mode and directory are those of the process environment (``WANDB_PROJECT``, ...) unless given
    as `settings`, which go to ``wandb.init``. Where no directory is given it is the run folder.

    Raises:
        NotInstalled: the package wandb is missing.
    """

    def __init__(self, *, interval: float = 5.0, **settings: Any) -> None:
        try:
            import wandb
        except ModuleNotFoundError as error:
            if error.name != "wandb":
                raise
            raise NotInstalled("logger 'wandb'", "wandb") from None
        self._wandb = wandb
        self._settings = settings
        self._interval = interval
        self._run: Any = None
        self._last = 0.0
        self._newest: Progress | None = None
        self._logged = -1

    def start(self, run: RunStart) -> None:
        """Begin a run, its configuration attached.

        Raises:
            WandbUnavailable: Weights & Biases does not take it; better said now than after the run.
        """
        settings = {"job_type": "evaluation", "config": dict(run.config), **self._settings}
        if run.output_dir is not None:
            settings.setdefault("dir", str(run.output_dir))
        try:
            self._run = self._wandb.init(**settings)
        except self._wandb.Error as error:
            raise WandbUnavailable(
                f"wandb cannot begin a run: {error} Without it: WANDB_MODE=offline, or another choice of log"
            ) from None

    def trajectory(self, report: TrajectoryReport, progress: Progress) -> None:
        """Log the running figures, when `interval` seconds have passed since the last time."""
        self._newest = progress
        now = time.monotonic()
        if now - self._last >= self._interval:
            self._last = now
            self._log(progress)

    def finish(self, result: RunResult) -> None:
        """Log the last figures and write the summary: ``<label>/<figure>``."""
        if self._run is None:
            return
        if self._newest is not None and self._newest.done != self._logged:
            self._log(self._newest)
        for label, figures in result.environments.items():
            for name in ("success_rate", "mean_reward", "error_rate", "num_done", "num_errors", "mean_turns"):
                value = getattr(figures, name)
                if value is not None:
                    self._run.summary[f"{label}/{name}"] = value
            for k, value in figures.pass_at_k.items():
                self._run.summary[f"{label}/pass@{k}"] = value
            for name, signal in figures.signals.items():
                self._run.summary[f"{label}/signals/{name}"] = signal.mean
        self._run.summary["complete"] = result.complete

    def close(self) -> None:
        """End the run and wait for what is on its way."""
        if self._run is not None:
            self._run.finish()
            self._run = None

    def _log(self, progress: Progress) -> None:
        figures = {
            "done": progress.done,
            "errors": progress.errors,
            "success_rate": progress.success_rate,
            "mean_reward": progress.mean_reward,
            "tokens_per_second": progress.tokens_per_second,
        }
        kept = {k: v for k, v in figures.items() if v is not None and math.isfinite(v)}
        self._run.log(kept, step=progress.done, commit=True)
        self._logged = progress.done
