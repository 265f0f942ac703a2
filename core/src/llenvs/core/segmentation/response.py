"""The response that is being written in a state of a `SegmentedEnvironment`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypedDict

from llenvs.core.action import Action
from llenvs.core.chat import following_messages, opening_text
from llenvs.core.errors import InvalidAction
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.segmentation.control import Segment
from llenvs.core.state import State


class SegmentedHidden(TypedDict):
    """Hidden state of a `SegmentedEnvironment`.

    Attributes:
        base: the base environment's state, in which the response is being written.
        chat: the chat before the message that is being written.
        segments: of that message, in order.
        said: earlier messages of the same response, each ended by a user's feedback.
        actions: taken in this response.
    """

    base: State[Any]
    chat: tuple[ChatMessage, ...]
    segments: tuple[str, ...]
    said: tuple[str, ...]
    actions: int


@dataclass(frozen=True, slots=True)
class Response:
    """A response as far as it is written, read from a state by `Response.of`.

    Attributes:
        chat: the chat before the message that is being written; the observation's task and prompt are in it.
        segments: of that message, in order.
        said: earlier messages of the same response, each ended by a user's feedback.
        actions: actions taken in this response.
    """

    chat: tuple[ChatMessage, ...]
    segments: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    actions: int = 0

    @classmethod
    def of(cls, state: State[Any]) -> Response:
        """That of a state of a `SegmentedEnvironment`.

        Raises:
            InvalidAction: the state is another environment's.
        """
        hidden = hidden_of(state)
        return cls(hidden["chat"], hidden["segments"], hidden["said"], hidden["actions"])

    @classmethod
    def beginning(cls, base: State[Any]) -> Response:
        """Nothing said yet in the first state of an episode."""
        return cls(base.observation.messages or (_opening(base.observation),))

    @property
    def text(self) -> str:
        """The message so far."""
        return "".join(self.segments)

    @property
    def whole_text(self) -> str:
        """All messages of the response, with blank lines between them: what the base environment is given."""
        whole = ""
        for text in (*self.said, self.text):
            breaks = len(whole) - len(whole.rstrip("\n"))
            whole += "\n" * (2 - min(2, breaks)) + text if whole and text else text
        return whole

    def after(self, segment: Segment) -> Response:
        """The response with one more segment, or with feedback after which a new message begins."""
        segments = (*self.segments, segment.text) if segment.text else self.segments
        written = replace(self, segments=segments, actions=self.actions + 1)
        if segment.feedback is None:
            return written
        text = written.text
        messages = ((ChatMessage.assistant(text),) if text else ()) + (ChatMessage.user(segment.feedback),)
        said = (*self.said, text) if text else self.said
        return replace(written, chat=(*self.chat, *messages), segments=(), said=said)

    def next_turn(self, segment: Segment, after: Observation) -> Response:
        """Nothing said yet after this response ended with `segment` and the base environment showed `after`."""
        if after.messages:
            return Response(after.messages)
        text = self.after(replace(segment, feedback=None)).text
        said = ChatMessage.assistant(text, segment.tool_calls)
        return Response((*self.chat, said, *following_messages(segment.tool_calls, after)))

    def base_action(self, segment: Segment) -> Action:
        """The base environment's action when the response ends with `segment`."""
        return Action(self.after(replace(segment, feedback=None)).whole_text, segment.tool_calls)

    def hidden(self, base: State[Any]) -> SegmentedHidden:
        """Hidden state that holds this response to `base`."""
        return SegmentedHidden(
            base=base, chat=self.chat, segments=self.segments, said=self.said, actions=self.actions
        )

    def observation(self, base: Observation) -> Observation:
        """What the model sees: the base environment's observation; once something is said, with the chat."""
        if not self.actions:
            return base
        begun = (ChatMessage.assistant(self.text),) if self.text else ()
        return replace(base, messages=(*self.chat, *begun))


def is_segmented(state: State[Any]) -> bool:
    """Whether `state` is one of a `SegmentedEnvironment`.

    Raises:
        InvalidAction: it is no state at all.
    """
    if not isinstance(state, State):
        raise InvalidAction(f"a State is needed, got {type(state).__name__}")
    return isinstance(state.hidden, dict) and state.hidden.keys() == SegmentedHidden.__annotations__.keys()


def hidden_of(state: State[Any]) -> SegmentedHidden:
    """The hidden state.

    Raises:
        InvalidAction: the state is another environment's.
    """
    if not is_segmented(state):
        raise InvalidAction(
            f"the state {state.metadata.episode_id} is none of a SegmentedEnvironment; a state of the base "
            "environment becomes one by SegmentedEnvironment.begin(state)"
        )
    hidden: SegmentedHidden = state.hidden
    return hidden


def _opening(observation: Observation) -> ChatMessage:
    return ChatMessage.user(opening_text(observation), observation.images)
