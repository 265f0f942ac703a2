"""The upstream's messages and tools as ours, and our actions as its messages."""

from __future__ import annotations

import base64
import binascii
import copy
from collections.abc import Iterable, Sequence
from typing import Any

from llenvs.core.action import Action
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs_aviary.upstream import load

UNREADABLE = "INVALID"
"""The tool name by which the upstream knows a call that it could not read."""


def definition(tool: Any) -> ToolDefinition:
    """What a model is told of a tool of the upstream: its own schema, unchanged."""
    function = tool.model_dump(exclude_none=True, by_alias=True)["function"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return ToolDefinition(function["name"], function["description"], parameters)


def request(action: Action, calls: Sequence[ToolCall]) -> Any:
    """The upstream's message for an action: a request with `calls`, or a plain message when it calls nothing."""
    core = load()
    if not action.tool_calls:
        return core.Message(role="assistant", content=action.text)
    return core.ToolRequestMessage(
        content=action.text or None,
        tool_calls=[
            core.ToolCall(id=call.id, function=core.ToolCallFunction(name=_name(call), arguments=_arguments(call)))
            for call in calls
        ],
    )


def _name(call: ToolCall) -> str:
    return UNREADABLE if call.problem else call.name


def _arguments(call: ToolCall) -> dict[str, Any]:
    # a copy: the upstream must not change the action, which is part of a state
    return {} if call.problem else copy.deepcopy(dict(call.arguments))


def chat_message(message: Any) -> ChatMessage:
    """A message of the upstream that is no answer to a tool call."""
    text, images = contents(message)
    role = "user" if message.role == "function" else message.role
    return ChatMessage(role, text, images=images)


def contents(message: Any) -> tuple[str, tuple[ImageContent, ...]]:
    """Text and pictures of a message of the upstream, whose content may be a list of both in JSON."""
    if not message.is_multimodal:
        return message.content or "", ()
    texts, images = [], []
    for part in message.deserialized_content:
        if part["type"] == "text":
            texts.append(part["text"])
        else:
            images.append(_image(part["image_url"]))
    return "\n\n".join(texts), tuple(images)


def _image(given: Any) -> ImageContent:
    url = given["url"] if isinstance(given, dict) else str(given)
    detail = given.get("detail") if isinstance(given, dict) else None
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        try:
            return ImageContent(
                base64.b64decode(data, validate=True), media_type=head[5:-7] or "image/png", detail=detail
            )
        except binascii.Error:
            return ImageContent(url=url, detail=detail)
    return ImageContent(url=url, detail=detail)


def is_plain(messages: Iterable[ChatMessage]) -> bool:
    """Whether these messages, beside tool results, are one user message at most: then no chat need be dictated."""
    roles = [message.role for message in messages]
    return roles in ([], ["user"])
