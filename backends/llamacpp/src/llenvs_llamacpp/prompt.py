"""From chat messages to the exact token ids of a prompt."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llenvs.core.message import ChatMessage
from llenvs.inference.errors import BadRequest

Post = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Sends JSON to a path of the server and gives the JSON that comes back."""


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as the model reads it: its text and its token ids."""

    text: str
    token_ids: tuple[int, ...]


def template_message(message: ChatMessage) -> dict[str, Any]:
    """`message` in the form that chat templates take."""
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        data["name"] = message.name
    return data


async def render(
    post: Post,
    messages: Sequence[ChatMessage],
    prefix: str,
    control_text: re.Pattern[str] | None,
) -> RenderedPrompt:
    """The prompt of `messages` by the model's chat template, and after it the assistant's `prefix`.

    What matches `control_text` in a message's content stays text: a user's ``<|im_end|>`` becomes some ordinary
    tokens, not the control token. With None the content is read as the server reads it, control tokens included.

    Raises:
        BadRequest: the template refuses the messages, or it changes contents so that such text cannot be kept
            apart.
    """
    contents = [template_message(message) for message in messages]
    literal: dict[str, str] = {}
    if control_text is not None:
        for data in contents:
            if control_text.search(data["content"]):
                placeholder = f"content{secrets.token_hex(8)}x"
                literal[placeholder] = data["content"]
                data["content"] = placeholder
    template: str = (await post("/apply-template", {"messages": contents}))["prompt"]
    pieces = [(template, True)] if not literal else _pieces(template, literal)
    ids: list[int] = []
    for number, (text, special) in enumerate([*pieces, (prefix, False)]):
        if text:
            # the beginning-of-text token is the tokenizer's to add: llama.cpp strips it from templates
            body = {"content": text, "add_special": number == 0, "parse_special": special}
            ids.extend((await post("/tokenize", body))["tokens"])
    return RenderedPrompt("".join(text for text, _ in pieces) + prefix, tuple(ids))


def _pieces(template: str, literal: Mapping[str, str]) -> list[tuple[str, bool]]:
    """`template` cut at its placeholders: (text, whether it is the template's own)."""
    cut = re.split("(" + "|".join(literal) + ")", template)
    if sorted(part for part in cut if part in literal) != sorted(literal):
        raise BadRequest(
            "llamacpp",
            "a message holds the text of a control token, and this model's chat template changes contents so that "
            "it cannot be kept apart; remove that text, or set parse_special=True to have control tokens read "
            "from messages",
        )
    return [(literal.get(part, part), part not in literal) for part in cut]
