"""The answer in what trainers hand to reward functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def last_answer(completion: Any) -> str:
    """The text of a completion.

    Args:
        completion: a text, or messages (mappings of ``role`` and ``content``), of which the last one of the
            assistant counts: what tools and environments said in between is not the model's answer.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence):
        for message in reversed(completion):
            if isinstance(message, Mapping) and message.get("role") == "assistant":
                return _text(message.get("content"))
        return ""
    raise TypeError(f"a completion is a text or a list of messages, got {type(completion).__name__}")


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(
        part.get("text", "") for part in content if isinstance(part, Mapping)
    )  # parts, as some APIs have
