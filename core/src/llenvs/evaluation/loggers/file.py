"""What happened in a run, one JSON object a line."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from llenvs.core.errors import InvalidOption
from llenvs.evaluation.loggers.logger import Progress, RunLogger, RunStart, TrajectoryReport

if TYPE_CHECKING:
    from llenvs.evaluation.result import RunResult


class FileLogger(RunLogger):
    """Appends events to a file: ``started``, ``trajectory``, ``notice``, ``finished``, each with its UTC time.

    Args:
        path: the file; None for ``events.jsonl`` in the run folder.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._file: IO[str] | None = None

    def start(self, run: RunStart) -> None:
        """Open the file.

        Raises:
            InvalidOption: neither a path nor a run folder is given.
        """
        path = self._path
        if path is None:
            if run.output_dir is None:
                raise InvalidOption("log", "file", "needs an output_dir to write to")
            path = run.output_dir / "events.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - open for the run
        self._write(
            "started",
            environments=list(run.environments),
            model=run.model,
            total=run.total,
            already_done=run.already_done,
            config=run.config,
        )

    def trajectory(self, report: TrajectoryReport, progress: Progress) -> None:
        """One line for the trajectory, with the running figures."""
        data = asdict(report)
        data["reward"] = report.reward if math.isfinite(report.reward) else None
        self._write(
            "trajectory",
            **data,
            done=progress.done,
            total=progress.total,
            errors=progress.errors,
            success_rate=progress.success_rate,
        )

    def notice(self, message: str) -> None:
        """One line for the message."""
        self._write("notice", message=message)

    def finish(self, result: RunResult) -> None:
        """One line with all figures."""
        self._write("finished", result=result.to_dict())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, event: str, **fields: Any) -> None:
        if self._file is not None:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._file.write(json.dumps({"time": now, "event": event, **fields}, allow_nan=False) + "\n")
