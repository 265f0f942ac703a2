"""Chat messages in the form of Anthropic's Messages API: a system text, and turns of content blocks."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.tools import ToolCall
from llenvs.inference.errors import BadRequest

RAW_CONTENT = "anthropic_content"
"""Metadata of an assistant message: its content blocks as the API sent them, where they hold thinking or anything
else that a message has no field for. They go back unchanged while text and calls of the message are unchanged."""

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def chat_to_api(messages: Sequence[ChatMessage], backend: str) -> tuple[str, list[dict[str, Any]]]:
    """The ``system`` text and the ``messages``.

    All results of one turn become blocks of one user message, which the user message after them joins: the API
    demands that every call is answered in the very next message.

    Raises:
        BadRequest: a system message after the chat has begun, which the API has no place for.
    """
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    results_are_open = False
    for message in messages:
        if message.role == "system":
            if turns:
                raise BadRequest(backend, "system messages must come first: the API takes one system text")
            system.append(message.content)
        elif message.role == "assistant":
            content = assistant_content(message)
            if content:  # the API refuses empty messages; a turn in which nothing was said can be left out
                turns.append({"role": "assistant", "content": content})
                results_are_open = False
        elif message.role == "tool":
            if not results_are_open:
                turns.append({"role": "user", "content": []})
                results_are_open = True
            turns[-1]["content"].append(_result(message))
        elif results_are_open:
            turns[-1]["content"] += _blocks(message)
            results_are_open = False
        else:
            plain = message.content if not message.images else _blocks(message)
            turns.append({"role": "user", "content": plain})
    return "\n\n".join(text for text in system if text), turns


def assistant_content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """Content of an assistant message."""
    raw = message.metadata.get(RAW_CONTENT)
    if raw and said_by(raw) == (message.content, [(call.id, call.name) for call in message.tool_calls]):
        return [dict(block) for block in raw]
    if not message.tool_calls:
        return message.content
    return [*_blocks(message), *map(_call, message.tool_calls)]


def said_by(blocks: Sequence[Mapping[str, Any]]) -> tuple[str, list[tuple[str, str]]]:
    """Text of content blocks, and ids and names of their calls."""
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    calls = [(str(b.get("id", "")), str(b.get("name", ""))) for b in blocks if b.get("type") == "tool_use"]
    return text, calls


def tool_choice_to_api(choice: str | None, parallel: bool | None) -> dict[str, Any] | None:
    """``tool_choice``: "auto", "none" and "required" in the API's words, anything else as the name of a tool."""
    words = {None: "auto", "auto": "auto", "none": "none", "required": "any"}
    if choice is None and parallel is None:
        return None
    made = {"type": words[choice]} if choice in words else {"type": "tool", "name": choice}
    if parallel is not None and made["type"] != "none":
        return {**made, "disable_parallel_tool_use": not parallel}
    return made


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": message.content}] if message.content else []
    return [*text, *map(_image, message.images)]


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _result(message: ChatMessage) -> dict[str, Any]:
    content = message.content if not message.images else _blocks(message)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": content}
    if message.metadata.get("is_error"):
        block["is_error"] = True
    return block


def _image(image: ImageContent) -> dict[str, Any]:
    if image.url is not None:
        inline = _DATA_URL.fullmatch(image.url)
        if inline is None:
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        media_type, data = inline[1], inline[2]
    else:
        media_type, data = image.media_type, base64.b64encode(image.data or b"").decode("ascii")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
