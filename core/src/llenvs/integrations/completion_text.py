"""The answer in what trainers hand to reward functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption


def last_answer(completion: Any) -> str:
    """The text of a completion.

    Args:
        completion: a text, or messages (mappings of ``role`` and ``content``), of which the last one of the
            assistant counts: what tools and environments said in between is not the model's answer.

    Raises:
        InvalidOption: it is neither.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence) and all(isinstance(message, Mapping) for message in completion):
        for message in reversed(completion):
            if message.get("role") == "assistant":
                return _text(message.get("content"))
        return ""
    raise InvalidOption("completions", completion, "must each be a text or a list of messages")


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(
        part.get("text", "") for part in content if isinstance(part, Mapping)
    )  # parts, as some APIs have
