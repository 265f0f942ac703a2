"""Last match wins: the rule that the extractors share."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def last_of(items: Iterable[Item]) -> Item | None:
    """The last of `items`, None where there is none."""
    kept = deque(items, maxlen=1)
    return kept[0] if kept else None
