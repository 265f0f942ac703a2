"""The chat of one trajectory: what the model is shown, built from observations and actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llenvs.core.action import Action
from llenvs.core.chat import following_messages, opening_text
from llenvs.core.generation import Generation
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.core.trajectory import Trajectory
from llenvs.inference.prompts import PromptBuilder


class Conversation:
    """The chat so far. Feed it with `observe` and `act` in turn; `messages` is what to send.

    - First observation: a user message with the task, the prompt and the images.
    - Action: an assistant message with its text and tool calls.
    - Later observations: one tool message for each call of the last action, matched by id, in the order of the
      calls; then a user message with the prompt and the images, left out when it would be empty after tool
      messages.
    - An observation with `messages` *is* the chat: it takes the place of all before it. What backends need back
      (see `act`) stays with the messages that are in both, unchanged and at the same place.

    System prompt, template, examples and format hint are the builder's.
    """

    def __init__(self, builder: PromptBuilder | None = None) -> None:
        self._builder = builder or PromptBuilder()
        self._chat: list[ChatMessage] = []
        self._task: str | None = None
        self._tools: tuple[ToolDefinition, ...] = ()
        self._turn = 0

    @classmethod
    def of(cls, trajectory: Trajectory, builder: PromptBuilder | None = None) -> Conversation:
        """The chat after all steps of `trajectory`."""
        conversation = cls(builder)
        conversation.observe(trajectory.initial_state.observation)
        for transition in trajectory:
            conversation.act(transition.action, transition.generation)
            conversation.observe(transition.next_state.observation)
        return conversation

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """What the newest observation offers."""
        return self._tools

    @property
    def chat(self) -> tuple[ChatMessage, ...]:
        """The chat without what the prompt builder adds."""
        return tuple(self._chat)

    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages to send. Those of a later turn begin with those of an earlier one, unless the
        environment rewrites its chat."""
        slots: dict[str, str] = {}
        if self._task is not None:
            slots["task"] = self._task
        return self._builder.build(self._chat, **slots)

    def observe(self, observation: Observation) -> None:
        """Add what the environment shows."""
        self._tools = observation.available_tools
        if observation.messages:
            self._chat = _with_metadata(observation.messages, self._chat)
            return
        if not self._chat:
            self._chat.append(self._first_message(observation))
            return
        self._chat += following_messages(self._chat[-1].tool_calls, observation)

    def _first_message(self, observation: Observation) -> ChatMessage:
        if observation.task and "task" in self._builder.spec.template.slots:
            self._task = observation.task
            return ChatMessage.user(observation.prompt, observation.images)
        return ChatMessage.user(opening_text(observation), observation.images)

    def act(self, action: Action, generation: Generation | None = None) -> None:
        """Add what the model did. What its backend needs back (signed reasoning) is kept from `generation`."""
        metadata = generation.metadata if generation is not None else {}
        self._turn += 1
        self._chat.append(
            ChatMessage("assistant", action.text, tool_calls=action.tool_calls, metadata=dict(metadata))
        )

    def action_of(self, generation: Generation, prefix: str = "") -> Action:
        """The action that `generation` is: its text after the prefix it continued, and its tool calls.

        Calls without an id, or with one that occurs twice, get one: results are matched by it.
        """
        calls: list[ToolCall] = []
        seen: set[str] = set()
        for number, call in enumerate(generation.tool_calls):
            if not call.id or call.id in seen:
                call = replace(call, id=f"call_{self._turn}_{number}")
            seen.add(call.id)
            calls.append(call)
        return Action(prefix + generation.text, tuple(calls))


def _with_metadata(new: Sequence[ChatMessage], old: Sequence[ChatMessage]) -> list[ChatMessage]:
    """`new`, with the messages of `old` where only their metadata is more."""
    kept = list(new)
    for number, (message, before) in enumerate(zip(new, old, strict=False)):
        if not message.metadata and replace(before, metadata={}) == message:
            kept[number] = before
    return kept
