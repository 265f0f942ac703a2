"""Stop strings: where a text ends that holds one."""

from __future__ import annotations

from collections.abc import Sequence


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """`text` up to the first stop string in it, and that string (of two at one place the longer), or None."""
    found = [(position, -len(stop), stop) for stop in stops if stop and (position := text.find(stop)) >= 0]
    if not found:
        return text, None
    position, _, stop = min(found)
    return text[:position], stop


def longest_in_tokens(stops: Sequence[str]) -> int:
    """Tokens at the end of a text that are enough to see whether it ends in a stop string just now."""
    return max((len(stop.encode()) for stop in stops), default=0) + 8  # a token spells at least one byte
