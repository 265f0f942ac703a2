"""Custom tools: OpenAI's calls with free text, optionally of a grammar, in place of JSON arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolCall, ToolDefinition

CUSTOM_CALLS = "custom_tool_calls"
"""Metadata of a message: call id -> the argument that holds the free text, for calls of custom tools."""
_FREE_TEXT = "input"


@dataclass(frozen=True)
class CustomTools:
    """Which of a request's tools are sent as custom ones.

    Such a tool has one argument, a string, which becomes the free text.

    Attributes:
        formats: by tool name; None for any text, else the API's ``format``, e.g.
            ``{"type": "grammar", "grammar": {"syntax": "lark", "definition": "..."}}``.
    """

    formats: Mapping[str, Mapping[str, Any] | None]

    @classmethod
    def of(cls, value: Sequence[str] | Mapping[str, Mapping[str, Any] | None]) -> CustomTools:
        """From names, or names with formats."""
        if isinstance(value, str):
            raise InvalidOption("custom_tools", value, "must be a list of names, or names with formats")
        return cls(dict(value) if isinstance(value, Mapping) else dict.fromkeys(value))

    def tool_to_api(self, tool: ToolDefinition) -> dict[str, Any]:
        """One entry of ``tools``."""
        if tool.name not in self.formats:
            return tool.to_openai()
        argument_of(tool)
        custom: dict[str, Any] = {"name": tool.name, "description": tool.description}
        format = self.formats[tool.name]
        if format is not None:
            custom["format"] = dict(format)
        return {"type": "custom", "custom": custom}

    def choice_to_api(self, choice: str | None) -> str | dict[str, Any] | None:
        """``tool_choice``: "auto", "none", "required" as they are, anything else as the name of a tool."""
        if choice is None or choice in ("auto", "none", "required"):
            return choice
        kind = "custom" if choice in self.formats else "function"
        return {"type": kind, kind: {"name": choice}}


def argument_of(tool: ToolDefinition) -> str:
    """The name of the one string argument of a custom tool.

    Raises:
        InvalidOption: it has others.
    """
    properties = tool.parameters.get("properties", {})
    names = list(properties)
    if len(names) != 1 or properties[names[0]].get("type") != "string":
        raise InvalidOption(
            "custom_tools", tool.name, "a custom tool must have exactly one argument, of type string"
        )
    return names[0]


def call_of(custom: Any, identity: str, tools: Sequence[ToolDefinition]) -> tuple[ToolCall, str]:
    """The call that the model made of a custom tool, and the argument that its text is."""
    name = str(getattr(custom, "name", "") or "")
    argument = next((argument_of(tool) for tool in tools if tool.name == name), _FREE_TEXT)
    return ToolCall(name, {argument: str(getattr(custom, "input", "") or "")}, identity), argument
