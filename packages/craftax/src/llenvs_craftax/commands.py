"""What a response says to do: names or numbers of actions, one or several, once or repeated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from llenvs.core.errors import nearest

_SEPARATORS = re.compile(r"[,;\n]+")
_EDGES = " \t\r\"'`*_.:!()[]{}<>"
_LEAD = re.compile(r"^(?:action|move|answer)\s*[:=]\s*", re.IGNORECASE)
_REPEATED = re.compile(
    r"^(?P<what>.*?[a-z])\s*(?:\s|[x*\u00d7]|\(x?|\bx\s*)\s*(?P<count>[0-9]{1,6})$", re.IGNORECASE
)
_NUMBER = re.compile(r"^[0-9]{1,3}$")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Understood:
    """Actions in their order, by the upstream's numbers; or `problem`, why there are none."""

    actions: tuple[int, ...] = ()
    problem: str = ""


def understand(text: str | None, names: Sequence[str], limit: int) -> Understood:
    """The actions in `text`.

    Case does not matter, nor whether words are joined by blanks, hyphens or underscores. A number stands for the
    action in that place of `names`. Several are parted by commas, semicolons or line ends; "left x3" and "left 3"
    repeat. Brackets and quotes around are ignored.

    Args:
        text: what the model said; None when no answer was found in its response.
        names: of all actions.
        limit: how many actions may be given at once.
    """
    if text is None or not text.strip(_EDGES):
        return Understood(problem="no action was given")
    parts = [part for part in (_bare(piece) for piece in _SEPARATORS.split(text[:20_000])) if part]
    actions: list[int] = []
    for part in parts:
        number, count = _one(part, names)
        if number is None:
            return Understood(problem=_unknown(part, names))
        if count < 1:
            return Understood(problem=f"{_short(part)} repeats an action less than once")
        if len(actions) + count > limit:
            allowed = "one action" if limit == 1 else f"{limit} actions"
            return Understood(problem=f"more than {allowed} at once")
        actions += [number] * count
    return Understood(tuple(actions)) if actions else Understood(problem="no action was given")


def _bare(piece: str) -> str:
    return _LEAD.sub("", piece.strip(_EDGES)).strip(_EDGES)


def _one(part: str, names: Sequence[str]) -> tuple[int | None, int]:
    if _NUMBER.match(part):
        number = int(part)
        return (number if number < len(names) else None), 1
    known = _numbers(part, names)
    if known is not None:
        return known, 1
    repeated = _REPEATED.match(part)
    if repeated is None:
        return None, 1
    return _numbers(repeated["what"].strip(_EDGES), names), int(repeated["count"])


def _numbers(words: str, names: Sequence[str]) -> int | None:
    wanted = re.sub(r"[\s_-]+", "_", words.strip()).casefold()
    return names.index(wanted) if wanted in names else None


def _unknown(part: str, names: Sequence[str]) -> str:
    if _NUMBER.match(part):
        return f"there is no action {part}; numbers go from 0 to {len(names) - 1}"
    close = nearest(part[:_SHOWN], names)
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"{_short(part)} is no action{meant}"


def _short(part: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in part[: _SHOWN + 1])
    return repr(printable if len(part) <= _SHOWN else f"{printable[: _SHOWN - 3]}...")
