"""From chat messages to the exact token ids of a prompt."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolDefinition
from llenvs.inference.local.chat_template import KeptApart, RenderedPrompt, template_message
from llenvs_llamacpp.client import NAME

Post = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Sends JSON to a path of the server and gives the JSON that comes back."""


async def render(
    post: Post,
    messages: Sequence[ChatMessage],
    prefix: str,
    control_text: re.Pattern[str] | None,
    tools: Sequence[ToolDefinition] = (),
) -> RenderedPrompt:
    """The prompt of `messages` by the model's chat template, and after it the assistant's `prefix`.

    `tools` are for templates that know them.

    What matches `control_text` in a message's content stays text: a user's ``<|im_end|>`` becomes some ordinary
    tokens, not the control token. With None the content is read as the server reads it, control tokens included.

    Raises:
        BadRequest: the template refuses the messages, or it changes contents so that such text cannot be kept
            apart.
    """
    apart = KeptApart.of([template_message(message) for message in messages], control_text)
    body: dict[str, Any] = {"messages": apart.messages}
    if tools:
        body["tools"] = [tool.to_openai() for tool in tools]
    template: str = (await post("/apply-template", body))["prompt"]
    pieces = apart.pieces(template, NAME)
    ids: list[int] = []
    for number, (text, special) in enumerate([*pieces, (prefix, False)]):
        if text:
            # the beginning-of-text token is the tokenizer's to add: llama.cpp strips it from templates
            body = {"content": text, "add_special": number == 0, "parse_special": special}
            ids.extend((await post("/tokenize", body))["tokens"])
    return RenderedPrompt("".join(text for text, _ in pieces) + prefix, tuple(ids))
