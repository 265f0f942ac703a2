"""Progress for a person at a terminal, or in the log of a batch job."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING

from llenvs.evaluation.loggers.logger import Progress, RunLogger, RunStart, TrajectoryReport

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from llenvs.evaluation.result import RunResult

_SHOWN_ERRORS = 5


class ConsoleLogger(RunLogger):
    """A progress bar on a terminal; elsewhere a line every `interval` seconds, so that a log stays readable.

    Shown are trajectories done and asked for, success rate (or mean reward) so far, errors, completion tokens a
    second and the time left. The first few different errors are shown as they come. All goes to `file`, by
    default standard error.
    """

    def __init__(self, file: IO[str] | None = None, *, interval: float = 10.0) -> None:
        from rich.console import Console

        self._console = Console(file=file, stderr=file is None, highlight=False)
        self._interval = interval
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._errors: set[str] = set()
        self._last_line = 0.0
        self._several = False

    def start(self, run: RunStart) -> None:
        """Say what begins."""
        self._several = len(run.environments) > 1
        names = ", ".join(run.environments[:3]) + (", ..." if len(run.environments) > 3 else "")
        self._print(f"{run.model} on {names}: {run.total} trajectories")
        if run.already_done:
            self._print(f"resuming: {run.already_done} are done already")
        self._last_line = time.monotonic()
        if self._console.is_terminal and run.already_done < run.total:
            self._start_bar(run)

    def _start_bar(self, run: RunStart) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            console=self._console,
            refresh_per_second=5,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=run.total, completed=run.already_done, figures="")

    def trajectory(self, report: TrajectoryReport, progress: Progress) -> None:
        """Move on."""
        if report.error is not None and report.error not in self._errors:
            if len(self._errors) < _SHOWN_ERRORS:
                place = f"{report.environment} " if self._several else ""
                self._print(f"error in {place}task {report.task_index}: {_first_line(report.error)}")
            elif len(self._errors) == _SHOWN_ERRORS:
                self._print("more errors are not shown")
            if len(self._errors) <= _SHOWN_ERRORS:
                self._errors.add(report.error)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.done, figures=figures_text(progress))
            return
        now = time.monotonic()
        if now - self._last_line >= self._interval:
            self._last_line = now
            self._print(f"{progress.done}/{progress.total}  {figures_text(progress)}")

    def notice(self, message: str) -> None:
        """Say it."""
        self._print(message)

    def finish(self, result: RunResult) -> None:
        """One closing line."""
        self._stop_bar()
        errors = f", {result.num_errors} errors" if result.num_errors else ""
        where = f"; kept in {result.output_dir}" if result.output_dir is not None else ""
        self._print(
            f"{result.num_done}/{result.num_planned} done in {_duration(result.wall_seconds)}{errors}{where}"
        )

    def close(self) -> None:
        """Take the bar away."""
        self._stop_bar()

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


def figures_text(progress: Progress) -> str:
    """The running figures in one line."""
    parts = []
    if progress.success_rate is not None:
        parts.append(f"success {progress.success_rate:.1%}")
    elif progress.mean_reward is not None:
        parts.append(f"reward {progress.mean_reward:.3f}")
    parts.append(f"errors {progress.errors}")
    parts.append(f"{progress.tokens_per_second:.0f} tok/s")
    if progress.seconds_left is not None:
        parts.append(f"{_duration(progress.seconds_left)} left")
    return "  ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    line = lines[0] if lines else ""
    return line if len(line) <= 300 else line[:297] + "..."
