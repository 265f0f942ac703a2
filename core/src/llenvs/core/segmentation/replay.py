"""What came of replaying a response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from llenvs.core.environment import StepResult
from llenvs.core.segmentation.control import Segment
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Replay(Sequence[StepResult]):
    """The results of the steps of a replay, in order.

    Attributes:
        trajectory: the same as a trajectory, to be gone on from.
    """

    trajectory: Trajectory

    @property
    def segments(self) -> tuple[str, ...]:
        """Text of each step."""
        return tuple(Segment.of(action).text for action in self.trajectory.actions)

    @property
    def rewards(self) -> tuple[float, ...]:
        """Total reward of each step."""
        return tuple(t.rewards.total for t in self.trajectory)

    @property
    def total_reward(self) -> float:
        """Their sum."""
        return self.trajectory.total_reward

    @property
    def final_state(self) -> State[Any]:
        """The state after the last step."""
        return self.trajectory.final_state

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.trajectory.done

    @overload
    def __getitem__(self, index: int) -> StepResult: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[StepResult, ...]: ...

    def __getitem__(self, index: int | slice) -> StepResult | tuple[StepResult, ...]:
        if isinstance(index, slice):
            return tuple(t.result for t in self.trajectory.transitions[index])
        return self.trajectory.transitions[index].result

    def __len__(self) -> int:
        return len(self.trajectory)

    def __iter__(self) -> Iterator[StepResult]:
        return (t.result for t in self.trajectory)
