"""States as they travel: the sections of the row of bytes, each compressed, and checked on the way in."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from llenvs_craftax.game import Game

_LEVEL = 1  # more would take longer than the step, for a tenth less


class DamagedState(ValueError):
    """Sections that are no state of this game."""


Sections = dict[str, bytes]


def compressed(game: Game, raw: np.ndarray[Any, Any], before: Mapping[str, bytes], changed: int = -1) -> Sections:
    """The sections of the state `raw`, compressed with zlib.

    Sections that did not change are handed on, which saves the time and, since most of a map stays as it is, most
    of the memory of kept states.

    Args:
        game: whose state it is.
        raw: its row of bytes.
        before: sections of an earlier state, or none.
        changed: which sections differ from those: bit i is set for the i-th.
    """
    made: Sections = {}
    for place, (name, (start, end)) in enumerate(game.layout.sections.items()):
        if name in before and not changed >> place & 1:
            made[name] = before[name]
        else:
            made[name] = zlib.compress(raw[start:end].tobytes(), _LEVEL)
    return made


def expanded(game: Game, sections: Any) -> np.ndarray[Any, Any]:
    """The row of bytes of a state that came from anywhere.

    Raises:
        DamagedState: these are not the sections of this game, they are damaged, or they hold what no state holds.
    """
    layout = game.layout
    if not isinstance(sections, Mapping) or set(sections) != set(layout.sections):
        raise DamagedState(f"it must have the arrays {', '.join(layout.sections)}")
    row = np.empty(layout.size, dtype=np.uint8)
    for name, (start, end) in layout.sections.items():
        row[start:end] = np.frombuffer(_inflated(name, sections[name], end - start), dtype=np.uint8)
    _check(game, row)
    row.flags.writeable = False
    return row


def _inflated(name: str, data: Any, size: int) -> bytes:
    if not isinstance(data, bytes):
        raise DamagedState(f"{name} must be bytes, is {type(data).__name__}")
    reader = zlib.decompressobj()
    try:
        part = reader.decompress(data, size + 1)  # a small text may stand for gigabytes
    except zlib.error as error:
        raise DamagedState(f"{name} cannot be read ({error})") from None
    if len(part) != size or not reader.eof or reader.unused_data:
        raise DamagedState(f"{name} has another length than {size} bytes")
    return part


def _check(game: Game, row: np.ndarray[Any, Any]) -> None:
    """That every number which is used as a place in something is one."""
    layout, upstream = game.layout, game.upstream
    record = layout.record(row)
    world = record["map"].shape
    ranges: list[tuple[str, int, Any]] = [
        ("map", 0, len(upstream.blocks)),
        ("player_direction", 1, 5),
        ("player_position", 0, np.array(world[-2:])),
        ("timestep", 0, 2**31 - 1),
    ]
    if upstream.variant == "full":
        ranges += [("item_map", 0, len(upstream.items)), ("player_level", 0, world[0])]
    for name, least, end in ranges:
        if np.any(record[name] < least) or np.any(record[name] >= end):
            raise DamagedState(f"{name} has values that do not exist")
    for leaf in layout.leaves:
        if leaf.dtype == "|b1" and leaf.stored[1] == leaf.shape and np.any(record[leaf.name] > 1):
            raise DamagedState(f"{leaf.name} has values that do not exist")
        if leaf.dtype == "<f4" and not np.all(np.isfinite(record[leaf.name])):
            raise DamagedState(f"{leaf.name} has values that are no numbers")
