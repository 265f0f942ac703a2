"""What an action of a `SegmentedEnvironment` can say beside its text: the response ends, or a user speaks.

Both are written as tool calls with names of their own, so that actions stay plain values. No model is offered
these tools; `without_control` keeps a model that calls them by chance from steering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llenvs.core.action import Action
from llenvs.core.errors import InvalidAction
from llenvs.core.tools import ToolCall

RESERVED = "segmentation."
"""Tools whose names begin like this are not for models."""
END = "segmentation.end"
FEEDBACK = "segmentation.feedback"


def final_segment(text: str = "", tool_calls: Iterable[ToolCall] = ()) -> Action:
    """The last segment of a response: `text` and the `tool_calls` with which the response ends, if any.

    Raises:
        InvalidAction: they are none.
    """
    if not isinstance(text, str):
        raise InvalidAction(f"the text of a segment must be a str, got {text!r:.100}")
    calls = tuple(tool_calls)
    wrong = [call for call in calls if not isinstance(call, ToolCall)]
    if wrong:
        raise InvalidAction(f"the tool calls of a segment must be ToolCalls, got {wrong[0]!r:.100}")
    return Action(text, calls or (ToolCall(END, {}, END),))


def user_feedback(text: str) -> Action:
    """A user turn within the response: the model's message ends, and it goes on in another one after `text`.

    Raises:
        InvalidAction: `text` is no text, or empty.
    """
    text = _feedback(text)
    return Action("", (ToolCall(FEEDBACK, {"text": text}, FEEDBACK),))


def _feedback(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise InvalidAction(f"the feedback of a user must be a text, and not empty, got {text!r:.100}")
    return text


@dataclass(frozen=True, slots=True)
class Segment:
    """An action as a `SegmentedEnvironment` reads it.

    Attributes:
        text: of the segment.
        tool_calls: the base environment's.
        ends: whether the response ends with it.
        feedback: a user's words instead of a segment, or None.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    ends: bool
    feedback: str | None

    @classmethod
    def of(cls, action: Action) -> Segment:
        """From an action: it ends the response when it says so, calls a tool, or says nothing at all.

        Raises:
            InvalidAction: it is feedback without a text.
        """
        calls = tuple(call for call in action.tool_calls if call.name not in (END, FEEDBACK))
        controls = {call.name: call for call in action.tool_calls if call.name in (END, FEEDBACK)}
        said = controls.get(FEEDBACK)
        feedback = None if said is None or calls or END in controls else _feedback(said.arguments.get("text"))
        ends = bool(calls) or END in controls or (feedback is None and not action.text)
        return cls(action.text, calls, ends, feedback)

    @property
    def action(self) -> Action:
        """Text and tool calls, without what steers."""
        return Action(self.text, self.tool_calls)


def without_control(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """`calls` of a model, with reserved names changed so that they are unknown tools like any other."""
    return tuple(replace(call, name=f"_{call.name}") if call.name.startswith(RESERVED) else call for call in calls)
