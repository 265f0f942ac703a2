"""How a run stops before its end."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from llenvs.core.errors import LLEnvsError
from llenvs.inference.loop import run_sync

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class EvaluationInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run in good order. `str()` says what is kept and how to resume.

    Attributes: `done` and `total` trajectories, `output_dir` (None: nothing was kept on disk).
    """

    def __init__(self, done: int, total: int, output_dir: Path | None) -> None:
        self.done, self.total, self.output_dir = done, total, output_dir
        super().__init__(f"stopped after {done} of {total} trajectories; {resume_hint(output_dir)}")


class TooManyErrors(LLEnvsError):
    """More trajectories than `max_errors` ended in an error."""

    def __init__(self, count: int, limit: int, last: str, output_dir: Path | None) -> None:
        self.count = count
        super().__init__(
            f"{count} trajectories ended in an error, more than max_errors={limit}; the last one: {last}; "
            + resume_hint(output_dir)
        )


def resume_hint(output_dir: Path | None) -> str:
    """What is kept, and how to go on."""
    if output_dir is None:
        return "nothing is kept, for the run has no output_dir"
    return f"they are kept in {output_dir}; run the same again to go on from there"


class Interruptible(Protocol[T_co]):
    """Something that becomes a run: `run` is None until it has begun."""

    @property
    def run(self) -> RunState | None:
        """The run, once there is one."""

    def execute(self) -> Coroutine[Any, Any, T_co]:
        """The whole of it."""


class RunState(Protocol):
    """How far a run has come."""

    @property
    def done(self) -> int:
        """Trajectories ended."""

    @property
    def total(self) -> int:
        """Trajectories asked for."""

    @property
    def output_dir(self) -> Path | None:
        """Where they are kept."""


def run_interruptibly(owner: Interruptible[T]) -> T:
    """``owner.execute()`` from synchronous code.

    Raises:
        EvaluationInterrupted: Ctrl-C, after the run has put everything in order.
    """
    try:
        return run_sync(owner.execute())
    except KeyboardInterrupt:
        run = owner.run
        if run is None:
            raise
        raise EvaluationInterrupted(run.done, run.total, run.output_dir) from None
