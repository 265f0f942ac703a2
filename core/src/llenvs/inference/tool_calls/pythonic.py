"""Lists of Python calls with literal arguments, read without evaluating anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from llenvs.core.tools import ToolCall
from llenvs.core.tools.model_json import MAX_DEPTH, well_formed

_SPACE = re.compile(r"\s*")
_TOOL = re.compile(r"[\w.-]+")
_KEY = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0",
    "\\": "\\", "'": "'", '"': '"', "/": "/", "\n": "",
}  # fmt: skip
_WORDS: dict[str, Any] = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}


class _Unreadable(ValueError):
    """Text that is no list of calls."""


def read_calls(text: str, start: int) -> tuple[list[ToolCall], int, str]:
    """The calls of the list that begins at ``text[start]``, where it ends, and what is wrong with it.

    The last is "" when nothing is. Otherwise come the calls before the fault, and where the faulty one begins.
    """
    reader = _Reader(text, start)
    calls: list[ToolCall] = []
    begun = start
    try:
        reader.take("[")
        while not reader.at("]"):
            begun = reader.position
            calls.append(reader.call())
            if not reader.skip(","):
                break
        reader.take("]")
    except _Unreadable as error:
        return calls, begun, str(error)
    return calls, reader.position, ""


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """One call, without the brackets of the list."""
    plain = [f"{key}={_literal(value)}" for key, value in arguments.items() if _KEY.fullmatch(key)]
    rest = {key: value for key, value in arguments.items() if not _KEY.fullmatch(key)}
    if rest:
        plain.append(f"**{_literal(rest)}")
    return f"{name}({', '.join(plain)})"


def _literal(value: Any) -> str:
    """`value` as a Python literal; texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(str(k))}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)


class _Reader:
    """A cursor over text."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def at(self, token: str) -> bool:
        """Whether `token` comes next, white space aside."""
        self._skip_space()
        return self.text.startswith(token, self.position)

    def skip(self, token: str) -> bool:
        """Take `token` if it comes next."""
        if self.at(token):
            self.position += len(token)
            return True
        return False

    def take(self, token: str) -> None:
        """Take `token`."""
        if not self.skip(token):
            raise self._unexpected(f"expected {token!r}")

    def call(self) -> ToolCall:
        """``name(key=value, ...)``."""
        name = self._match(_TOOL, "expected the name of a function")
        self.take("(")
        arguments: dict[str, Any] = {}
        while not self.at(")"):
            if self.skip("**"):
                more = self.value(1)
                if not isinstance(more, dict):
                    raise _Unreadable("what follows ** must be a dictionary")
                arguments.update(more)
            else:
                key = self._match(_KEY, "expected an argument of the form name=value")
                if not self.skip("="):
                    raise _Unreadable(f"every argument needs a name, as in {name}(argument=value)")
                arguments[key] = self.value(0)
            if not self.skip(","):
                break
        self.take(")")
        return ToolCall(name, arguments)

    def value(self, depth: int) -> Any:
        """A literal."""
        if depth > MAX_DEPTH:
            raise _Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")
        if self.skip("["):
            return self._items("]", depth)
        if self.skip("("):
            return self._items(")", depth)
        if self.skip("{"):
            return self._dict(depth)
        if found := _STRING.match(self.text, self.position):
            self.position = found.end()
            return well_formed(_ESCAPE.sub(_unescape, found[0][1:-1]))
        if found := _NUMBER.match(self.text, self.position):
            self.position = found.end()
            return _number(found[0])
        if (found := _KEY.match(self.text, self.position)) and found[0] in _WORDS:
            self.position = found.end()
            return _WORDS[found[0]]
        raise self._unexpected("expected a value")

    def _items(self, closing: str, depth: int) -> list[Any]:
        items = []
        while not self.at(closing):
            items.append(self.value(depth + 1))
            if not self.skip(","):
                break
        self.take(closing)
        return items

    def _dict(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not self.at("}"):
            key = self.value(depth + 1)
            if not isinstance(key, str):
                raise _Unreadable("the keys of a dictionary must be strings")
            self.take(":")
            made[key] = self.value(depth + 1)
            if not self.skip(","):
                break
        self.take("}")
        return made

    def _match(self, pattern: re.Pattern[str], problem: str) -> str:
        self._skip_space()
        found = pattern.match(self.text, self.position)
        if found is None:
            raise self._unexpected(problem)
        self.position = found.end()
        return found[0]

    def _skip_space(self) -> None:
        found = _SPACE.match(self.text, self.position)
        if found:
            self.position = found.end()

    def _unexpected(self, problem: str) -> _Unreadable:
        if self.position >= len(self.text):
            return _Unreadable("it ends too early")
        return _Unreadable(f"{problem}, found {self.text[self.position : self.position + 20]!r}")


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    return _ESCAPED.get(found[4], found[0])


def _number(digits: str) -> int | float:
    try:
        if re.fullmatch(r"[+-]?\d+", digits):
            return int(digits)
        value = float(digits)
    except ValueError:
        raise _Unreadable("a number in it is too long") from None
    if value in (float("inf"), float("-inf")):
        raise _Unreadable(f"the number {digits[:20]} is too large")
    return value
