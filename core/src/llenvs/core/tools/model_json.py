"""JSON as models write it: any text is read, and what cannot be read is explained."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MAX_DEPTH = 64
"""Levels of nesting; states and their JSON allow 100 for everything in them."""

_WHITESPACE = " \t\r\n"


class _NotJson(ValueError):
    """A constant or number that JSON (as others read it) does not have."""


def _refuse(constant: str) -> NoReturn:
    raise _NotJson(f"{constant} is not a JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _NotJson(f"the number {digits[:20]} is too large")
    return value


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def read_value(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at ``text[start]`` (white space before it allowed), and where it ends.

    What follows the value is not looked at. Unpaired surrogates, which no UTF-8 text can hold, become U+FFFD.

    Raises:
        ValueError: with words that a model can use.
    """
    while start < len(text) and text[start] in _WHITESPACE:
        start += 1
    try:
        value, end = _decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ValueError(_explained(error, text)) from None
    except RecursionError:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels") from None
    except _NotJson:
        raise
    except ValueError:  # a number of more digits than Python converts
        raise ValueError("a number in it is too long") from None
    if _too_deep(value):
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    return _clean(value), end


def read_object(text: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object that `text` is, or None and what is wrong with it.

    Allowed around the object: white space and a code fence. An empty text is an empty object, which is how
    several APIs write a call without arguments.
    """
    inner = without_fence(text)
    if not inner.strip():
        return {}, ""
    try:
        value, end = read_value(inner)
    except ValueError as error:
        return None, str(error)
    if inner[end:].strip():
        return None, f"there is text after the JSON object: {inner[end:].strip()[:40]!r}"
    if isinstance(value, str):  # encoded twice
        return read_object(value) if value.lstrip()[:1] == "{" else (None, "it is a string, not a JSON object")
    if not isinstance(value, dict):
        return None, f"it is {_kind(value)}, not a JSON object"
    return value, ""


def without_fence(text: str) -> str:
    """`text` without a code fence around all of it."""
    stripped = text.strip()
    if not stripped.startswith("```"):
        return text
    first_line, newline, rest = stripped.partition("\n")
    if not newline or (not first_line[3:].strip().isalnum() and first_line[3:].strip()):
        return text
    return rest.rstrip().removesuffix("```")


def _explained(error: json.JSONDecodeError, text: str) -> str:
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "the JSON ends too early"
    return f"{error.msg[0].lower()}{error.msg[1:]} at line {error.lineno}, column {error.colno}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names: dict[type, str] = {list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_clean(v) for v in value]
    if isinstance(value, dict):
        return {well_formed(k): _clean(v) for k, v in value.items()}
    return value


def well_formed(text: str) -> str:
    """`text` with U+FFFD for each unpaired surrogate, so that it can be sent as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # pairs that came as two escapes are joined, what is left alone is replaced
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
