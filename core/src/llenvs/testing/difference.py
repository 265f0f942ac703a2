"""Where two values differ, in words."""

from __future__ import annotations

from typing import Any

from llenvs.core.encoding import canonical, encode


def difference(one: Any, other: Any) -> str | None:
    """The first place where two encodable values differ, with both sides; None when they are the same.

    Types count (``1`` is not ``True``, a list is no tuple), the order of dict keys does not.
    """
    if canonical(one) == canonical(other):
        return None
    return _first(encode(one), encode(other), "")


def _first(one: Any, other: Any, path: str) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(k for k in other if k not in one)]:
            inner = path if key.startswith("$") else f"{path}.{key}"
            if key not in one or key not in other:
                return _said(inner, one.get(key, "<nothing>"), other.get(key, "<nothing>"))
            if canonical(one[key]) != canonical(other[key]):
                return _first(one[key], other[key], inner)
    if isinstance(one, list) and isinstance(other, list):
        for i, (a, b) in enumerate(zip(one, other, strict=False)):
            if canonical(a) != canonical(b):
                return _first(a, b, f"{path}[{i}]")
        return f"{path.lstrip('.') or 'value'}: {len(one)} items, then {len(other)}"
    return _said(path, one, other)


def _said(path: str, one: Any, other: Any) -> str:
    return f"{path.lstrip('.') or 'value'}: {_short(one)}, then {_short(other)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
