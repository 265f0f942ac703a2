"""What a model called, and what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from llenvs.core.encoding import record, record_enum


@record
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made.

    Attributes:
        name: of the tool ("" when the text was too broken to tell).
        arguments: by name.
        id: what the result must carry.
        problem: why what the model wrote could not be read as a call, in words for the model; "" for a call in
            order. A call with a problem is never executed: its result is the problem.
        source: what the model wrote, kept only when there is a problem.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    problem: str = ""
    source: str = ""

    @classmethod
    def from_json(cls, name: str, arguments: str, id: str = "") -> ToolCall:
        """A call whose arguments are JSON text from a model, which may be anything.

        Text that is no JSON object gives a call with a `problem`; nothing is raised.
        """
        from llenvs.core.tools.model_json import read_object

        found, problem = read_object(arguments)
        if found is None:
            return cls(name, {}, id, f"The arguments of {name!r} are not valid: {problem}.", arguments)
        return cls(name, found, id)


@record_enum
class ToolStatus(StrEnum):
    """How a tool call ended."""

    SUCCESS = "success"
    ERROR = "error"
    """the tool ran and failed, ran out of time, or was not run at all"""
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    """arguments that do not fit the schema, or a call that could not be read"""


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

    @property
    def is_valid_call(self) -> bool:
        """Whether the call itself was in order: a tool that exists, with arguments that fit it."""
        return self.status in (ToolStatus.SUCCESS, ToolStatus.ERROR)
