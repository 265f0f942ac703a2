"""What a tool returned, as text for a model."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from llenvs.core.tools.errors import ToolFailed
from llenvs.core.tools.model_json import well_formed

_NO_VALUE = "(no output)"


def result_text(value: Any, max_characters: int | None = None) -> str:
    """`value` as text: a str as it is, bytes as UTF-8, everything else as JSON where it has one, else its `str`.

    Args:
        max_characters: a longer text is cut, and says so.

    Raises:
        ToolFailed: the value is an iterator or an awaitable, which would have to be run, or its own code for
            turning it into text fails.
    """
    if inspect.isawaitable(value) or isinstance(value, Iterator):
        if inspect.iscoroutine(value):
            value.close()
        raise ToolFailed(f"the tool returned no value but {type(value).__name__}")
    text = well_formed(_text(value))
    if max_characters is not None and len(text) > max_characters:
        return f"{text[:max_characters]}\n[cut here: {max_characters} of {len(text)} characters]"
    return text


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if value is None:
        return _NO_VALUE
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, int):  # also of more digits than Python turns into text
        return str(value) if value.bit_length() < 10_000 else hex(value)
    if isinstance(value, float | complex):
        return repr(value)
    try:
        return to_json(value, fallback=str, inf_nan_mode="constants", bytes_mode="utf8").decode("utf-8")
    except (PydanticSerializationError, ValueError, RecursionError):
        return str(value)
