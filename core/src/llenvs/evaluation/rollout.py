"""One finished rollout: a trajectory and how it ended."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

from llenvs.core.errors import LLEnvsError
from llenvs.core.generation import FinishReason, Usage
from llenvs.core.message import ChatMessage
from llenvs.core.trajectory import Trajectory

_TRACEBACK_LINES = 12
_MESSAGE_LENGTH = 4000


@dataclass(frozen=True, slots=True)
class RolloutError:
    """Why a rollout has no score.

    Attributes:
        type: name of the exception's class.
        message: its text, cut after 4000 characters.
        traceback: the last lines of the traceback for an exception nobody foresaw, else "".
    """

    type: str
    message: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> RolloutError:
        """From an exception."""
        tail = ""
        if not isinstance(error, LLEnvsError | TimeoutError):
            lines = "".join(traceback.format_exception(error)).splitlines()
            tail = "\n".join(lines[-_TRACEBACK_LINES:])
        try:
            message = str(error)
        except Exception as broken:  # noqa: BLE001 - an exception whose text cannot be made is still to be reported
            message = f"(its text could not be made: {type(broken).__name__})"
        if len(message) > _MESSAGE_LENGTH:
            message = f"{message[:_MESSAGE_LENGTH]}... ({len(message)} characters)"
        return cls(type(error).__name__, message, tail)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class Rollout:
    """A trajectory with its outcome.

    Attributes:
        task_index, repeat: which task, which attempt at it.
        seed: what the environment was reset with.
        trajectory: the steps taken, each with the generation behind its action (exact token ids and logprobs
            where the backend gives them); None when the environment could not even be reset.
        requests: for each step the messages that were sent for it.
        success: as the environment declares it; None when it declares none or `error` is set.
        signals: per signal the sum of its numbers over the steps.
        error: why there is no score, or None.
        seconds: from reset to the end.
        cut_off: the runner's own `max_steps` ended it.
        branches: rollouts that left this one on the way and went on by themselves.
        paid: tokens and cost where they are more than those of the generations in the trajectory (text that was
            thrown away, branches); None where they are not.
    """

    task_index: int
    repeat: int
    seed: int
    trajectory: Trajectory | None
    requests: tuple[tuple[ChatMessage, ...], ...] = ()
    success: bool | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    error: RolloutError | None = None
    seconds: float = 0.0
    cut_off: bool = False
    branches: tuple[Rollout, ...] = ()
    paid: Usage | None = None

    @property
    def reward(self) -> float:
        """Total reward of the trajectory; of an errored rollout, of the steps taken."""
        return 0.0 if self.trajectory is None else self.trajectory.total_reward

    @property
    def num_turns(self) -> int:
        """Actions taken."""
        return 0 if self.trajectory is None else len(self.trajectory)

    @property
    def usage(self) -> Usage:
        """Tokens and cost of all generations."""
        if self.paid is not None:
            return self.paid
        if self.trajectory is None:
            return Usage()
        return sum((t.generation.usage for t in self.trajectory if t.generation is not None), Usage())

    @property
    def length_limited(self) -> bool:
        """Whether a generation ended at its token limit."""
        return self.trajectory is not None and any(
            t.generation is not None and t.generation.finish_reason is FinishReason.LENGTH for t in self.trajectory
        )
