"""Messages and tools as OpenAI's Chat Completions write them, in our form and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llenvs.core.action import Action
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.tools import ToolCall, ToolDefinition


def chat_messages(messages: Iterable[Mapping[str, Any]]) -> tuple[ChatMessage, ...]:
    """Messages of a request in our form; tool messages get the name of the call that they answer."""
    converted: list[ChatMessage] = []
    called: dict[str, str] = {}
    for message in messages:
        text, images = _content(message.get("content"))
        calls = tuple(
            ToolCall.from_json(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in message.get("tool_calls") or ()
        )
        called.update((call.id, call.name) for call in calls)
        answered = message.get("tool_call_id")
        name = message.get("name") or called.get(answered or "")
        converted.append(
            ChatMessage(str(message["role"]), text, images, calls, answered, name if answered else None)
        )
    return tuple(converted)


def text_of(messages: Sequence[ChatMessage]) -> str:
    """The texts of `messages` that are not empty, with an empty line between them."""
    return "\n\n".join(message.content for message in messages if message.content)


def after_the_reply(chat: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """What follows the last message of the assistant."""
    last = max((i for i, message in enumerate(chat) if message.role == "assistant"), default=-1)
    return tuple(chat[last + 1 :])


def tool_definitions(tools: Iterable[Mapping[str, Any]]) -> tuple[ToolDefinition, ...]:
    """Tools of a request in our form."""
    functions = (tool["function"] for tool in tools if tool.get("type", "function") == "function")
    return tuple(
        ToolDefinition(f["name"], f.get("description") or "", f.get("parameters") or {}) for f in functions
    )


def completion(action: Action, model: str) -> dict[str, Any]:
    """`action` as a model's answer. A call that could not be read is passed on as the model wrote it, so that what
    runs the tools says what is wrong with it. Half surrogate pairs, which no request can carry, become "?".
    """
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": _encodable(call.name), "arguments": _encodable(_arguments(call))},
        }
        for call in action.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": _encodable(action.text) or (None if calls else "")}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "llenvs", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}


def _arguments(call: ToolCall) -> str:
    return call.source if call.problem else json.dumps(dict(call.arguments), ensure_ascii=False)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _content(content: Any) -> tuple[str, tuple[ImageContent, ...]]:
    if content is None or isinstance(content, str):
        return content or "", ()
    texts = [part["text"] for part in content if part.get("type") == "text"]
    images = [ImageContent(url=part["image_url"]["url"]) for part in content if part.get("type") == "image_url"]
    return "\n".join(texts), tuple(images)
