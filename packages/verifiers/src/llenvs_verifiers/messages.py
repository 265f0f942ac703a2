"""Messages and tools of the upstream as ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from verifiers.legacy.types import Tool

from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.tools import ToolCall, ToolDefinition

_ROLES = {"text": "user"}  # the one message of a prompt that is a plain text


def chat_messages(messages: Iterable[Any]) -> tuple[ChatMessage, ...]:
    """Messages of the upstream in our form; tool messages get the name of the call that they answer."""
    converted: list[ChatMessage] = []
    called: dict[str, str] = {}
    for message in messages:
        text, images = _content(message.get("content"))
        calls = tuple(
            ToolCall.from_json(call.name, call.arguments, call.id) for call in message.get("tool_calls") or ()
        )
        called.update((call.id, call.name) for call in calls)
        answered = message.get("tool_call_id")
        role = _ROLES.get(message.role, message.role)
        converted.append(ChatMessage(role, text, images, calls, answered, called.get(answered or "")))
    return tuple(converted)


def text_of(messages: Sequence[ChatMessage]) -> str:
    """The texts of `messages` that are not empty, with an empty line between them."""
    return "\n\n".join(message.content for message in messages if message.content)


def tool_definitions(tools: Iterable[Tool]) -> tuple[ToolDefinition, ...]:
    """Tools of the upstream in our form."""
    return tuple(ToolDefinition(tool.name, tool.description, tool.parameters) for tool in tools)


def _content(content: Any) -> tuple[str, tuple[ImageContent, ...]]:
    if content is None or isinstance(content, str):
        return content or "", ()
    texts, images = [], []
    for part in content:
        part = part if isinstance(part, dict) else part.model_dump()
        if part.get("type") == "image_url":
            images.append(ImageContent(url=part["image_url"]["url"]))
        elif part.get("type") == "text":
            texts.append(part["text"])
        else:
            texts.append(f"[{part.get('type')}]")
    return "\n".join(texts), tuple(images)
