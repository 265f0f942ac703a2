"""Chats in the form that chat templates take, with the text of control tokens kept out of their contents."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from llenvs.core.message import ChatMessage
from llenvs.inference.errors import BadRequest


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as the model reads it: its text and its token ids.

    Attributes:
        text: control tokens written out.
        token_ids: of the pieces, each for itself.
        pieces: the text in pieces, each with whether control tokens in it are meant as such; () where not known.
    """

    text: str
    token_ids: tuple[int, ...]
    pieces: tuple[tuple[str, bool], ...] = ()


def template_message(message: ChatMessage, arguments: Literal["text", "mapping"] = "text") -> dict[str, Any]:
    """`message` in the form that chat templates take.

    Args:
        message: images become parts after the text, without their data: the template writes a placeholder.
        arguments: of tool calls, as the text of their JSON (llama.cpp) or as the object itself (transformers).
    """
    content: str | list[dict[str, Any]] = message.content
    if message.images:
        text = [{"type": "text", "text": message.content}] if message.content else []
        content = [*text, *({"type": "image"} for _ in message.images)]
    data: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)
                    if arguments == "text"
                    else dict(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        data["name"] = message.name
    return data


@dataclass(frozen=True)
class KeptApart:
    """Messages whose contents hold no text of control tokens, and how to put back what was taken out.

    A user's ``<|im_end|>`` must become some ordinary tokens and not the control token, which would end the turn.
    So contents that hold such text go through the template as placeholders.

    Attributes:
        messages: for the template.
        literal: contents by placeholder.
    """

    messages: list[dict[str, Any]]
    literal: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, messages: Sequence[dict[str, Any]], control_text: re.Pattern[str] | None) -> KeptApart:
        """Take out the contents that match `control_text`; None: nothing."""
        literal: dict[str, str] = {}

        def kept(text: str) -> str:
            if control_text is None or not control_text.search(text):
                return text
            placeholder = f"content{secrets.token_hex(8)}x"
            literal[placeholder] = text
            return placeholder

        made = []
        for data in messages:
            content = data["content"]
            if isinstance(content, str):
                content = kept(content)
            else:
                content = [{**part, "text": kept(part["text"])} if "text" in part else part for part in content]
            made.append({**data, "content": content})
        return cls(made, literal)

    def pieces(self, rendered: str, backend: str) -> list[tuple[str, bool]]:
        """The template's output in pieces: (text, whether control tokens in it are meant as such).

        Raises:
            BadRequest: the template changes contents so that they cannot be put back.
        """
        if not self.literal:
            return [(rendered, True)]
        cut = re.split("(" + "|".join(self.literal) + ")", rendered)
        if sorted(part for part in cut if part in self.literal) != sorted(self.literal):
            raise BadRequest(
                backend,
                "a message holds the text of a control token, and this model's chat template changes contents so "
                "that it cannot be kept apart; remove that text, or set parse_special=True to have control tokens "
                "read from messages",
            )
        return [(self.literal.get(part, part), part not in self.literal) for part in cut if part]
