"""Chats with tools as chats of plain text, for models whose own template knows no tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference.tool_calls.parser import ToolCallParser

RESPONSE_TEXT = "response_text"
"""Where the metadata of an assistant message holds what the model wrote, calls included."""


def render_chat(
    messages: Sequence[ChatMessage], tools: Sequence[ToolDefinition], parser: ToolCallParser
) -> tuple[ChatMessage, ...]:
    """`messages` without tool calls and messages of role "tool".

    The description of `tools` (if there are any) ends the system message, which is added when there is none. Calls
    become part of the assistant's text, word for word as the model wrote them where that is known. The results of
    one turn become one user message, together with the user message that may follow: templates of many models
    demand that the roles alternate.
    """
    plain: list[ChatMessage] = []
    results: list[ChatMessage] = []
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        if results:
            text = parser.format_results(results)
            results = []
            if message.role == "user":
                text = f"{text}\n\n{message.content}" if message.content else text
                plain.append(ChatMessage.user(text, message.images))
                continue
            plain.append(ChatMessage.user(text))
        plain.append(_assistant(message, parser) if message.role == "assistant" else message)
    if results:
        plain.append(ChatMessage.user(parser.format_results(results)))
    if tools:
        told = parser.format_tools(tools)
        if plain and plain[0].role == "system":
            before = f"{plain[0].content}\n\n" if plain[0].content else ""
            plain[0] = replace(plain[0], content=before + told)
        else:
            plain.insert(0, ChatMessage.system(told))
    return tuple(plain)


def _assistant(message: ChatMessage, parser: ToolCallParser) -> ChatMessage:
    if not message.tool_calls:
        return message
    written = as_written(message, parser)
    if written is None:
        calls = parser.format_calls(message.tool_calls)
        written = f"{message.content}\n{calls}" if message.content else calls
    return replace(message, content=written, tool_calls=())


def as_written(message: ChatMessage, parser: ToolCallParser) -> str | None:
    """What the model wrote, for an assistant message that still says the same; None where that is not known."""
    written = message.metadata.get(RESPONSE_TEXT)
    return written if isinstance(written, str) and _same(written, message, parser) else None


def _same(written: str, message: ChatMessage, parser: ToolCallParser) -> bool:
    """Whether the message still says what the model wrote: somebody may have edited it since."""
    parsed = parser.parse(written)
    return parsed.text == message.content and _contents(parsed.calls) == _contents(message.tool_calls)


def _contents(calls: Sequence[ToolCall]) -> list[ToolCall]:
    return [replace(call, id="") for call in calls]
