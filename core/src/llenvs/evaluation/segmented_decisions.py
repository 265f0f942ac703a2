"""What a callback of a segmented rollout is shown after each segment, and what it may decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from llenvs.core.environment import StepResult
from llenvs.core.errors import InvalidOption, LLEnvsError
from llenvs.core.segmentation.control import Segment
from llenvs.core.segmentation.response import Response
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class SegmentStep:
    """A segment that was just generated and taken.

    Attributes:
        task_index, repeat: of the rollout.
        branch: () for the rollout itself; for the i-th branch of a `Branch`, numbered from 1, the path of the
            rollout that it left and i.
        trajectory: all steps so far, this one the last.
    """

    task_index: int
    repeat: int
    branch: tuple[int, ...]
    trajectory: Trajectory

    @property
    def result(self) -> StepResult:
        """Of the step: its rewards are the process rewards, and the base environment's when the response ended."""
        return self.trajectory.transitions[-1].result

    @property
    def reward(self) -> float:
        """Total reward of the step."""
        return self.result.rewards.total

    @property
    def text(self) -> str:
        """The segment."""
        return self.trajectory.transitions[-1].action.text

    @property
    def state(self) -> State[Any]:
        """The state after the segment."""
        return self.trajectory.final_state

    @property
    def written(self) -> str:
        """The message up to the segment, which is its last part."""
        before = self.trajectory.transitions[-1].state
        return (Response.of(before).text if before is not None else "") + self.text

    @property
    def index(self) -> int:
        """Number of the segment in its message, from 0."""
        before = self.trajectory.transitions[-1].state
        return len(Response.of(before).segments) if before is not None else 0

    @property
    def ends_response(self) -> bool:
        """Whether the response ended with the segment."""
        last = self.trajectory.transitions[-1]
        return Segment.of(last.action).ends or Response.of(last.next_state).actions == 0


@dataclass(frozen=True, slots=True)
class GoOn:
    """Go on, as without a callback. The same as None."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """End the model's message here, say `text` as the user, and let the model go on in a new message.

    Raises:
        InvalidOption: `text` is no text, or empty.
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text:
            raise InvalidOption("text", self.text, "must be a text, and not empty")


@dataclass(frozen=True, slots=True)
class ForceNext:
    """Put `text` in the model's mouth as the next segment; it goes on from there, or, with `end`, has ended.

    Raises:
        InvalidOption: `text` is no text, or empty without `end`; `end` is no truth value.
    """

    text: str
    end: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not (self.text or self.end):
            raise InvalidOption(
                "text", self.text, "must be a text, and not empty unless the response ends with it"
            )
        _check_truth("end", self.end)


@dataclass(frozen=True, slots=True)
class Finish:
    """Let the model write the rest of this response in one request, without asking the callback again."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the rollout. With `submit` the base environment is given the response as it stands, else nothing.

    Raises:
        InvalidOption: `submit` is no truth value.
    """

    submit: bool = False

    def __post_init__(self) -> None:
        _check_truth("submit", self.submit)


@dataclass(frozen=True, slots=True)
class Branch:
    """Go on in `count` ways from here: the rollout itself and ``count - 1`` further ones, with seeds of their own.

    The further ones are in ``rollout.branches``; the trajectory of each begins with the steps up to here. Every
    one of them asks the callback too.

    Raises:
        InvalidOption: `count` is no integer >= 1.
    """

    count: int = 2

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidOption("count", self.count, "must be a positive integer")


def _check_truth(field: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidOption(field, value, "must be True or False")


Decision = GoOn | Feedback | ForceNext | Finish | Stop | Branch

StepCallback = Callable[[SegmentStep], "Decision | Awaitable[Decision | None] | None"]
"""Called after each generated segment, the last ones of responses and of the episode included (what it decides at
the end of the episode changes nothing). A plain function is called in a worker thread, in several at once when
several trajectories are in flight, and may use the runner itself; an async one on the event loop."""


class CallbackFailed(LLEnvsError):
    """A callback raised what would have ended the event loop or the task: SystemExit, StopIteration and the like.

    Any other exception of a callback is the error of its rollout as it is.
    """

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"step_callback raised {type(cause).__name__}: {cause}")


def decide(callback: StepCallback, step: SegmentStep) -> Any:
    """What a plain `callback` returns for `step`, in a thread.

    Raises:
        CallbackFailed: for what a thread cannot hand on to an event loop.
    """
    try:
        return callback(step)
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            raise
        raise CallbackFailed(error) from error


def checked_decision(given: Any) -> Decision:
    """`given`, if it is a decision; None is `GoOn`.

    Raises:
        InvalidOption: it is not.
    """
    if given is None:
        return GoOn()
    if isinstance(given, GoOn | Feedback | ForceNext | Finish | Stop | Branch):
        return given
    if isinstance(given, type) and issubclass(given, GoOn | Feedback | ForceNext | Finish | Stop | Branch):
        raise InvalidOption("step_callback", given, f"returned a class: write {given.__name__}(...)")
    valid = "None, GoOn(), Feedback(text), ForceNext(text), Finish(), Stop(), Branch(count)"
    raise InvalidOption("step_callback", given, "returned what is no decision", valid=valid)
