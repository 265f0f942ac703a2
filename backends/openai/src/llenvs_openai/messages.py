"""Chat messages in the form of OpenAI's Chat Completions."""

from __future__ import annotations

import json
from typing import Any

from llenvs.core.message import ChatMessage, ImageContent

RAW_ARGUMENTS = "raw_tool_arguments"
"""Metadata of a message: call id -> arguments as the model wrote them, where they are no JSON object."""


def message_to_api(message: ChatMessage) -> dict[str, Any]:
    """One entry of ``messages``. Images follow the text as parts; broken tool arguments go back as they came."""
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        text = [{"type": "text", "text": message.content}] if message.content else []
        data["content"] = [*text, *map(_image_part, message.images)]
    if message.tool_calls:
        raw = message.metadata.get(RAW_ARGUMENTS, {})
        data["content"] = message.content or None
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": raw.get(call.id, json.dumps(dict(call.arguments), ensure_ascii=False)),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    return data


def tool_choice_to_api(choice: str | None) -> str | dict[str, Any] | None:
    """``tool_choice``: "auto", "none", "required" as they are, anything else as the name of a function."""
    if choice is None or choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _image_part(image: ImageContent) -> dict[str, Any]:
    url: dict[str, Any] = {"url": image.as_url}
    if image.detail is not None:
        url["detail"] = image.detail
    return {"type": "image_url", "image_url": url}
