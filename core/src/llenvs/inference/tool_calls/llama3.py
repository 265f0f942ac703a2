"""Llama 3: calls as JSON objects (3.1) or as a list of Python calls (3.2, 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
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
    past,
    to_json,
)
from llenvs.inference.tool_calls.pythonic import format_call, read_calls
from llenvs.inference.tool_calls.thinking import end_of_thinking

_TAG = "<|python_tag|>"
_LEADING = re.compile(r"\s*(?:<\|python_tag\|>\s*)?(?:```[\w-]*\s*)?")
_BEGUN = re.compile(r'\{\s*"(?:name|type|function)"\s*:')
_SEPARATOR = re.compile(r"\s*[;,]?\s*")
_LIST = re.compile(r"\[\s*[\w.-]+\s*\(")
_CALLED = re.compile(r"\[?\s*([\w.-]{1,128})\s*\(")
_LINE = re.compile(r"^[ \t]*(?=\[\s*[\w.-]+\s*\()", re.MULTILINE)
_MAX_FAILURES = 200  # opening braces of what is no JSON; each costs a pass over the text


class Llama3JsonToolCallParser(ToolCallParser):
    """Reads and writes ``{"name": ..., "parameters": {...}}``, several separated by ``;``.

    Format: Meta's prompt format for Llama 3.1. An object inside other text is taken for a call when it has a name
    and parameters (or arguments); everything else stays text.
    """

    name: ClassVar[str] = "llama3_json"
    form: ClassVar[str] = '{"name": "...", "parameters": {...}}'
    frame: ClassVar[CallFrame | None] = CallFrame(
        start="", before_name='{"name": ', after_name=', "parameters": ', after_arguments="}", between="; ", end=""
    )

    def parse(self, text: str) -> ParsedResponse:
        """See `ToolCallParser.parse`."""
        position = end_of_thinking(text)
        calls: list[ToolCall] = []
        pieces = [text[:position]]
        expected = past(_LEADING, text, position)
        failures = 0
        while (start := text.find("{", position)) >= 0 and failures < _MAX_FAILURES:
            try:
                value, end = read_value(text, start)
            except ValueError as error:
                if start == expected and _BEGUN.match(text, start):
                    calls.append(self.unreadable(text[start:].strip(), str(error)))
                    pieces.append(text[position:start])
                    position = len(text)
                    break
                value, end = None, start + 1
                failures += 1
            if _is_call(value):
                pieces.append("" if calls and start == expected else text[position:start])
                calls += self.calls_in(value, text[start:end])
                expected = past(_SEPARATOR, text, end)
                position = end
            else:
                pieces.append(text[position:end])
                position = end
        pieces.append(text[position:])
        if not calls:
            return ParsedResponse(text)
        return ParsedResponse(outside(pieces).replace(_TAG, "").strip(), tuple(calls))

    def format_calls(self, calls: Sequence[ToolCall]) -> str:
        """See `ToolCallParser.format_calls`."""
        return "; ".join(call.source if call.problem else call_json(call, "parameters") for call in calls)

    def format_tools(self, tools: Sequence[ToolDefinition]) -> str:
        """See `ToolCallParser.format_tools`."""
        lines = "\n\n".join(to_json(tool.to_openai()) for tool in tools)
        return (
            "You have access to the following functions. To call one, answer with nothing but a JSON object of "
            'the form {"name": function name, "parameters": dictionary of argument name and its value}. '
            f"To call several, separate the objects by semicolons.\n\n{lines}"
        )

    def format_results(self, results: Sequence[ChatMessage]) -> str:
        """See `ToolCallParser.format_results`."""
        return _results(results)


class Llama3PythonicToolCallParser(ToolCallParser):
    """Reads and writes ``[name(argument=value, ...), ...]`` with Python literals as values.

    Format: Meta's prompt format for Llama 3.2 and Llama 4. A list counts as calls where a line begins with it.
    Arguments whose name is no identifier are written as ``**{"name": value}``. Nothing is evaluated.
    """

    name: ClassVar[str] = "llama3_pythonic"
    form: ClassVar[str] = "[name(argument=value)]"

    def parse(self, text: str) -> ParsedResponse:
        """See `ToolCallParser.parse`."""
        position = end_of_thinking(text)
        calls: list[ToolCall] = []
        pieces = [text[:position]]
        leading = past(_LEADING, text, position)
        while (start := _next_list(text, position, leading)) >= 0:
            pieces.append(text[position:start])
            found, position, problem = read_calls(text, start)
            calls += found
            if problem:
                source = "[" + text[position:] if found else text[start:]
                broken = self.unreadable(source.strip(), problem)
                named = _CALLED.match(source)
                calls.append(replace(broken, name=named[1]) if named else broken)
                position = len(text)
        pieces.append(text[position:])
        if not calls:
            return ParsedResponse(text)
        return ParsedResponse(outside(pieces).replace(_TAG, "").strip(), tuple(calls))

    def format_calls(self, calls: Sequence[ToolCall]) -> str:
        """See `ToolCallParser.format_calls`."""
        good = [format_call(call.name, call.arguments) for call in calls if not call.problem]
        return "\n".join([*([f"[{', '.join(good)}]"] if good else []), *(c.source for c in calls if c.problem)])

    def format_tools(self, tools: Sequence[ToolDefinition]) -> str:
        """See `ToolCallParser.format_tools`."""
        lines = "\n\n".join(to_json(tool.to_openai()) for tool in tools)
        return (
            "You have access to the following functions. To call them, answer with nothing but a list of the form "
            f"[function_name(argument=value, other_argument=value), other_function(argument=value)].\n\n{lines}"
        )

    def format_results(self, results: Sequence[ChatMessage]) -> str:
        """See `ToolCallParser.format_results`."""
        return _results(results)


def _next_list(text: str, position: int, leading: int) -> int:
    """Where the next list of calls begins: behind what may lead a response, or at the start of a line; else -1."""
    if position <= leading and _LIST.match(text, leading):
        return leading
    found = _LINE.search(text, position)
    return found.end() if found else -1


def _is_call(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    inner = value.get("function") if isinstance(value.get("function"), dict) else value
    return isinstance(inner, dict) and "name" in inner and ("parameters" in inner or "arguments" in inner)


def _results(results: Sequence[ChatMessage]) -> str:
    return "\n".join(f"Result of {result.name or 'the call'}:\n{result.content}" for result in results)
