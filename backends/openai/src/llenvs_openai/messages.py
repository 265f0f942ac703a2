"""Chat messages in the form of OpenAI's Chat Completions."""

from __future__ import annotations

import json
from typing import Any

from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.tools import ToolCall
from llenvs_openai.custom_tools import CUSTOM_CALLS


def message_to_api(message: ChatMessage) -> dict[str, Any]:
    """One entry of ``messages``. Images follow the text as parts; broken tool arguments go back as they came."""
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        text = [{"type": "text", "text": message.content}] if message.content else []
        data["content"] = [*text, *map(_image_part, message.images)]
    if message.tool_calls:
        custom = message.metadata.get(CUSTOM_CALLS, {})
        data["content"] = message.content or None
        data["tool_calls"] = [_call_to_api(call, custom.get(call.id)) for call in message.tool_calls]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    return data


def _call_to_api(call: ToolCall, custom_argument: str | None) -> dict[str, Any]:
    if custom_argument is not None:
        text = str(call.arguments.get(custom_argument, ""))
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": text}}
    arguments = call.source if call.problem else json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _image_part(image: ImageContent) -> dict[str, Any]:
    url: dict[str, Any] = {"url": image.as_url}
    if image.detail is not None:
        url["detail"] = image.detail
    return {"type": "image_url", "image_url": url}
