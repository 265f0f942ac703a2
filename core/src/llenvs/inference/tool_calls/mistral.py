"""Mistral: ``[TOOL_CALLS]`` before a list of calls, or before each call."""

from __future__ import annotations

import re
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
    past,
    to_json,
)
from llenvs.inference.tool_calls.thinking import end_of_thinking

_MARK = "[TOOL_CALLS]"
_SPACE = re.compile(r"\s*(?:```[\w-]*\s*)?")
_NAMED = re.compile(r"([A-Za-z0-9_.-]{1,128})\s*(?:\[CALL_ID\]\s*([A-Za-z0-9]+)\s*)?(?:\[ARGS\])?\s*(?=\{)")


class MistralToolCallParser(ToolCallParser):
    """``[TOOL_CALLS][{"name": ..., "arguments": {...}}]`` or ``[TOOL_CALLS]name[ARGS]{...}``; writes the former.

    Format: Mistral's instruct tokenizers, versions 2 to 7 (list) and 11 on (one mark per call).
    """

    name: ClassVar[str] = "mistral"
    form: ClassVar[str] = '[TOOL_CALLS][{"name": "...", "arguments": {...}}]'
    frame: ClassVar[CallFrame | None] = CallFrame(
        start="[TOOL_CALLS][",
        before_name='{"name": ',
        after_name=', "arguments": ',
        after_arguments="}",
        between=", ",
        end="]",
    )

    def parse(self, text: str) -> ParsedResponse:
        """See `ToolCallParser.parse`."""
        position = end_of_thinking(text)
        pieces = [text[:position]]
        calls: list[ToolCall] = []
        while (start := text.find(_MARK, position)) >= 0:
            pieces.append(text[position:start])
            found, position = self._marked(text, start + len(_MARK))
            calls += found
        pieces.append(text[position:])
        return ParsedResponse(outside(pieces), tuple(calls)) if calls else ParsedResponse(text)

    def _marked(self, text: str, start: int) -> tuple[list[ToolCall], int]:
        """The calls behind the mark that ends at `start`, and where they end."""
        position = past(_SPACE, text, start)
        named = _NAMED.match(text, position)
        following = text.find(_MARK, position)
        limit = len(text) if following < 0 else following
        try:
            if named is None and text[position : position + 1] not in ("[", "{"):
                raise ValueError("there is no JSON after the mark" if position < limit else "it ends too early")
            value, end = read_value(text, named.end() if named else position)
        except ValueError as error:
            return [self._broken(text[position:limit].strip(), str(error), named)], limit
        if named is None:
            return self.calls_in(value, text[position:end]), end
        return [ToolCall(named[1], value, named[2] or "")], end

    def _broken(self, source: str, why: str, named: re.Match[str] | None) -> ToolCall:
        call = self.unreadable(source, why)
        return ToolCall(named[1], {}, named[2] or "", call.problem, call.source) if named else call

    def format_calls(self, calls: Sequence[ToolCall]) -> str:
        """See `ToolCallParser.format_calls`."""
        good = [call_json(call, extra={"id": call.id} if call.id else None) for call in calls if not call.problem]
        lists = [f"{_MARK}[{', '.join(good)}]"] if good else []
        return "".join([*lists, *(f"{_MARK}{call.source}" for call in calls if call.problem)])

    def format_tools(self, tools: Sequence[ToolDefinition]) -> str:
        """See `ToolCallParser.format_tools`."""
        return f"[AVAILABLE_TOOLS]{to_json([tool.to_openai() for tool in tools])}[/AVAILABLE_TOOLS]"

    def format_results(self, results: Sequence[ChatMessage]) -> str:
        """See `ToolCallParser.format_results`."""
        return "".join(
            f"[TOOL_RESULTS]{to_json({'content': r.content, 'call_id': r.tool_call_id or ''})}[/TOOL_RESULTS]"
            for r in results
        )
