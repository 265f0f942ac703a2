"""Where a run reports to: the console, a file, Weights & Biases."""

from __future__ import annotations

from collections.abc import Iterable

from llenvs.core.errors import UnknownName
from llenvs.evaluation.loggers.logger import Progress, RunLogger, RunStart, TrajectoryReport

LogSpec = str | Iterable[str | RunLogger] | None
"""What `make_loggers` takes."""

LOGGERS = ("console", "file", "wandb")
"""Names that a configuration may use."""


class UnknownLogger(UnknownName):
    """No logger of this name exists."""

    kind = "logger"


def make_loggers(specs: LogSpec) -> list[RunLogger]:
    """Loggers from their names.

    Args:
        specs: names, or a text of names with commas between them, or loggers (kept); None or "" for none.

    Raises:
        UnknownLogger: with the nearest names.
        NotInstalled: ``wandb`` without the package, with the install command.
    """
    if specs is None:
        return []
    if isinstance(specs, str):
        specs = [part.strip() for part in specs.split(",") if part.strip()]
    return [_make_logger(spec) for spec in specs]


def _make_logger(spec: str | RunLogger) -> RunLogger:
    if isinstance(spec, RunLogger):
        return spec
    match spec:
        case "console":
            from llenvs.evaluation.loggers.console import ConsoleLogger

            return ConsoleLogger()
        case "file":
            from llenvs.evaluation.loggers.file import FileLogger

            return FileLogger()
        case "wandb":
            from llenvs.evaluation.loggers.wandb import WandbLogger

            return WandbLogger()
    raise UnknownLogger(str(spec), LOGGERS)


__all__ = [
    "LOGGERS",
    "LogSpec",
    "Progress",
    "RunLogger",
    "RunStart",
    "TrajectoryReport",
    "UnknownLogger",
    "make_loggers",
]
