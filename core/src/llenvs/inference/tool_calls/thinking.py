"""Thoughts at the start of a response, in which calls are only considered."""

from __future__ import annotations

_OPEN = "<think>"
_CLOSE = "</think>"


def end_of_thinking(text: str) -> int:
    """Where the response proper begins: after a leading ``<think>`` block; the end if it never closes."""
    if not text.lstrip().startswith(_OPEN):
        return 0
    end = text.find(_CLOSE)
    return len(text) if end < 0 else end + len(_CLOSE)
