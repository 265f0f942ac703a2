"""``<tool_call>`` tags around JSON: Hermes, Qwen, and many models tuned like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.core.tools.model_json import read_value
from llenvs.inference.tool_calls.parser import (
    CallFrame,
    ParsedResponse,
    ToolCallParser,
    call_json,
    outside,
    to_json,
)
from llenvs.inference.tool_calls.thinking import end_of_thinking

_OPEN = "<tool_call>"
_CLOSE = "</tool_call>"
_SKIPPED = " \t\r\n,;"


class HermesToolCallParser(ToolCallParser):
    """Reads and writes ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``.

    Format: the function calling of Nous Research's Hermes 2 Pro. Calls inside a ``<think>`` block at the start of
    the response are thoughts, not calls.
    """

    name: ClassVar[str] = "hermes"
    form: ClassVar[str] = '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'
    frame: ClassVar[CallFrame | None] = CallFrame(
        start="<tool_call>\n",
        before_name='{"name": ',
        after_name=', "arguments": ',
        after_arguments="}",
        between="\n</tool_call>\n<tool_call>\n",
        end="\n</tool_call>",
    )

    def parse(self, text: str) -> ParsedResponse:
        """See `ToolCallParser.parse`."""
        calls: list[ToolCall] = []
        position = end_of_thinking(text)
        pieces = [text[:position]]
        while (start := text.find(_OPEN, position)) >= 0:
            pieces.append(text[position:start])
            found, position = self._inside(text, start + len(_OPEN))
            calls += found
        pieces.append(text[position:])
        return ParsedResponse(outside(pieces), tuple(calls)) if calls else ParsedResponse(text)

    def _inside(self, text: str, start: int) -> tuple[list[ToolCall], int]:
        """The calls of the tag that opens before `start`, and where the text after it begins."""
        calls: list[ToolCall] = []
        position = start
        while True:
            position = _skip(text, position)
            if text.startswith(_CLOSE, position):
                return calls or [self.unreadable("", "there is nothing between the tags")], position + len(_CLOSE)
            if position == len(text):  # cut off, or the closing tag was forgotten
                return calls or [self.unreadable(text[start:], "the JSON ends too early")], position
            if text.startswith(_OPEN, position) and calls:
                return calls, position
            try:
                if text[position] not in "{[":
                    raise ValueError("there is no JSON object after the opening tag")
                value, end = read_value(text, position)
            except ValueError as error:
                end = _end(text, position)
                if not calls:  # else it is text after the call
                    calls = [self.unreadable(text[start:end].strip(), str(error))]
                return calls, end + len(_CLOSE) if text.startswith(_CLOSE, end) else end
            calls += self.calls_in(value, text[position:end])
            position = end

    def format_calls(self, calls: Sequence[ToolCall]) -> str:
        """See `ToolCallParser.format_calls`."""
        bodies = (call.source if call.problem else call_json(call) for call in calls)
        return "\n".join(f"{_OPEN}\n{body}\n{_CLOSE}" for body in bodies)

    def format_tools(self, tools: Sequence[ToolDefinition]) -> str:
        """See `ToolCallParser.format_tools`."""
        lines = "\n".join(to_json(tool.to_openai()) for tool in tools)
        return (
            f"You may call the functions listed between <tools> and </tools>.\n<tools>\n{lines}\n</tools>\n"
            "To call one, answer with its name and arguments as JSON:\n"
            f'{_OPEN}\n{{"name": <function-name>, "arguments": <arguments-object>}}\n{_CLOSE}'
        )

    def format_results(self, results: Sequence[ChatMessage]) -> str:
        """See `ToolCallParser.format_results`."""
        return "\n".join(f"<tool_response>\n{result.content}\n</tool_response>" for result in results)


def _skip(text: str, position: int) -> int:
    """Past white space, separators and code fences with their language."""
    while position < len(text):
        if text[position] in _SKIPPED:
            position += 1
        elif text.startswith("```", position):
            position += 3
            while position < len(text) and text[position].isalnum():
                position += 1
        else:
            break
    return position


def _end(text: str, position: int) -> int:
    """Where a broken call ends: at the next tag, or with the text."""
    found = [i for i in (text.find(_CLOSE, position), text.find(_OPEN, position)) if i >= 0]
    return min(found, default=len(text))
