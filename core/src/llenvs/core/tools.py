"""Tools as values: what a model may call, what it called, what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from llenvs.core.encoding import record, record_enum


@record
@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that a model may call.

    Attributes:
        name: as the model calls it.
        description: what the model reads.
        parameters: JSON Schema (draft 2020-12) of an object with the arguments.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def to_openai(self) -> dict[str, Any]:
        """The ``tools`` entry of OpenAI's Chat Completions."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


@record
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made: `name`, `arguments` by name, and the `id` its result must carry."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@record_enum
class ToolStatus(StrEnum):
    """How a tool call ended."""

    SUCCESS = "success"
    ERROR = "error"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"


@record
@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back for the call `call_id`: `content` is the text that the model reads."""

    call_id: str
    content: str
    status: ToolStatus = ToolStatus.SUCCESS
    name: str = ""

    @property
    def ok(self) -> bool:
        """Whether the tool ran and did not fail."""
        return self.status is ToolStatus.SUCCESS
