"""Tool calls as text: how a family of models reads about tools, writes calls and is told results."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolCall, ToolDefinition

_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{1,128})"')
_EMPTY_FENCE = re.compile(r"```[\w-]*\s*(?:```|\Z)")
_MAX_SOURCE = 4000  # characters kept of a call that could not be read


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A response taken apart: the text outside of the calls, and the calls.

    A call that could not be read is among them, with its `problem`.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFrame:
    """The fixed text around the JSON arguments of calls, for grammars that force a call.

    One call is ``before_name + name + after_name + arguments + after_arguments``; all of them stand between
    `start` and `end`, with `between` in the middle of two.
    """

    start: str
    before_name: str
    after_name: str
    after_arguments: str
    between: str
    end: str


class ToolCallParser(ABC):
    """The form in which one family of models calls tools.

    `parse` takes any text and never raises. What `format_calls` writes, `parse` reads back exactly.
    """

    name: ClassVar[str]
    """As written in a configuration."""
    form: ClassVar[str]
    """How a call is written, for models that got it wrong."""
    frame: ClassVar[CallFrame | None] = None
    """For grammars; None where arguments are not written as JSON."""

    @abstractmethod
    def parse(self, text: str) -> ParsedResponse:
        """The calls in a response. Calls have an id only where the form has one."""

    @abstractmethod
    def format_calls(self, calls: Sequence[ToolCall]) -> str:
        """`calls` as the model would write them; one that could not be read, as it was written."""

    @abstractmethod
    def format_tools(self, tools: Sequence[ToolDefinition]) -> str:
        """What the system prompt says about `tools`."""

    @abstractmethod
    def format_results(self, results: Sequence[ChatMessage]) -> str:
        """The text of a user message that hands over the results in messages of role "tool"."""

    # -- for the parsers ----------------------------------------------------------------------------------

    def calls_in(self, value: Any, source: str) -> list[ToolCall]:
        """The calls that a JSON value stands for: one object, or a list of them."""
        values = value if isinstance(value, list) and value else [value]
        return [self._call(each, source) for each in values]

    def _call(self, value: Any, source: str) -> ToolCall:
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            value = {"id": value.get("id"), **value["function"]}  # the form of OpenAI's API
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
            return self.unreadable(source, "a call needs a 'name'")
        arguments = value.get("arguments", value.get("parameters"))
        name, given = value["name"], value.get("id")
        id = given if isinstance(given, str) else ""
        if isinstance(arguments, str):
            return ToolCall.from_json(name, arguments, id)
        if arguments is None:
            return ToolCall(name, {}, id)
        if not isinstance(arguments, dict):
            return self.unreadable(source, "the arguments must be a JSON object")
        return ToolCall(name, arguments, id)

    def unreadable(self, source: str, why: str) -> ToolCall:
        """The call that stands for `source`, which could not be read."""
        named = _NAME.search(source)
        problem = f"the tool call could not be read: {why}. Write it as {self.form}"
        return ToolCall(named[1] if named else "", {}, "", problem, source[:_MAX_SOURCE])


def to_json(value: Any) -> str:
    """JSON as chat templates write it (``tojson``): one line, a space after colons and commas."""
    return json.dumps(value, ensure_ascii=False)


def call_json(call: ToolCall, key: str = "arguments", extra: Mapping[str, Any] | None = None) -> str:
    """One call as a JSON object."""
    return to_json({"name": call.name, key: dict(call.arguments), **(extra or {})})


def outside(pieces: Sequence[str]) -> str:
    """The text around calls, without the code fences that held nothing but calls."""
    return _EMPTY_FENCE.sub("", "".join(pieces)).strip()


def past(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where what `pattern` finds at `position` ends; `position` if it finds nothing."""
    found = pattern.match(text, position)
    return found.end() if found else position
