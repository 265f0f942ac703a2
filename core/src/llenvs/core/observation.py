"""Observations: everything the model may see, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from llenvs.core.encoding import record
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.tools import ToolDefinition, ToolResult

_SEQUENCES = ("messages", "images", "tool_results", "available_tools")


@record
@dataclass(frozen=True, slots=True)
class Observation:
    """What the model sees in a state.

    Attributes:
        prompt: what is new this turn.
        task: the unchanging task text, if the benchmark has one.
        messages: the chat so far, this turn's message included, for environments that dictate it (their own
            system prompt, tool messages). Empty for all others: then the chat is made from the prompts of the
            observations and the actions taken.
        images: belong to `prompt`.
        tool_results: answers to the tool calls of the last action, in their order.
        available_tools: what may be called now.
    """

    prompt: str = ""
    task: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    images: tuple[ImageContent, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    available_tools: tuple[ToolDefinition, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, str):
            raise TypeError(f"Observation.prompt must be a str, got {type(self.prompt).__name__}: {self.prompt!r}")
        # written out: this runs at every step of every episode
        if not (
            type(self.messages) is tuple
            and type(self.images) is tuple
            and type(self.tool_results) is tuple
            and type(self.available_tools) is tuple
        ):
            for name in _SEQUENCES:
                object.__setattr__(self, name, tuple(getattr(self, name)))

    def __str__(self) -> str:
        return self.prompt
