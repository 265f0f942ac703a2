"""Actions: what a policy does in a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llenvs.core.encoding import record
from llenvs.core.tools import ToolCall


@record
@dataclass(frozen=True, slots=True)
class Action:
    """What the policy said: free `text`, `tool_calls`, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"Action.text must be a str, got {type(self.text).__name__}: {self.text!r}")
        if type(self.tool_calls) is not tuple:
            object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    @classmethod
    def from_text(cls, text: str) -> Action:
        """An action that is text alone."""
        return cls(text=text)

    @classmethod
    def from_tool_call(
        cls, name: str, arguments: Mapping[str, Any] | None = None, *, id: str = "call_0", text: str = ""
    ) -> Action:
        """An action that calls one tool."""
        return cls(text=text, tool_calls=(ToolCall(name, dict(arguments or {}), id),))
