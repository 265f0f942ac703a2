"""The protocol of loggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llenvs.evaluation.result import RunResult


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run as it begins.

    Attributes:
        environments: labels, in order.
        model: the model's name.
        total: trajectories asked for.
        already_done: those that the run folder already held.
        output_dir: the run folder, if there is one.
        config: the resolved configuration, without secrets.
    """

    environments: Sequence[str]
    model: str
    total: int
    already_done: int = 0
    output_dir: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        done, total: trajectories ended and asked for, those of earlier sessions included.
        errors: ended in an error.
        judged, successes: of how many the environment declared success or failure, and success.
        mean_reward: over the trajectories without error, or None.
        session_done: ended in this session.
        session_tokens: completion tokens of this session.
        seconds: since this session began.
    """

    done: int
    total: int
    errors: int = 0
    judged: int = 0
    successes: int = 0
    mean_reward: float | None = None
    session_done: int = 0
    session_tokens: int = 0
    seconds: float = 0.0

    @property
    def success_rate(self) -> float | None:
        """Successes over judged trajectories."""
        return self.successes / self.judged if self.judged else None

    @property
    def tokens_per_second(self) -> float:
        """Completion tokens a second in this session."""
        return self.session_tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimate from the rate of this session; None before the first trajectory ended."""
        if not self.session_done:
            return None
        return (self.total - self.done) * self.seconds / self.session_done


@dataclass(frozen=True, slots=True)
class TrajectoryReport:
    """One ended trajectory, in short. `error` is "type: message", or None."""

    environment: str
    task_index: int
    repeat: int
    success: bool | None
    reward: float
    seconds: float
    completion_tokens: int
    num_turns: int
    error: str | None = None


class RunLogger:
    """Hears what happens in a run; every method does nothing unless overridden.

    Called from one thread, in this order: `start`, then `trajectory` and `notice` any number of times, then
    `finish` if the run came to its end or was stopped in good order, then `close` in any case. A logger that
    raises is closed and left out of the rest of the run, with a warning; the run goes on.
    """

    def start(self, run: RunStart) -> None:
        """A run begins, or goes on."""

    def trajectory(self, report: TrajectoryReport, progress: Progress) -> None:
        """A trajectory ended."""

    def notice(self, message: str) -> None:
        """Something a person should read."""

    def finish(self, result: RunResult) -> None:
        """The figures; `result.complete` tells whether the run came to its end."""

    def close(self) -> None:
        """Free what the logger holds."""
