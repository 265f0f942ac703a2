"""Snapshots of the engine: what differs from the story file as bytes that mean the same in any process.

Layout, little-endian: `_HEAD`, then for memory and stack each the places that differ from the story (from zero),
two bytes each and rising, and the values there, one byte each. That is about a kilobyte; to compress it would take
longer than the game does for a step.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_FORMAT = 1
# format, story (first bytes of its SHA-256), score, moves, whether these are known, pc, sp, fp, frame count,
# opcode, random number generator (3), places that differ in memory and stack
_HEAD = struct.Struct("<B8siiBiiiiiqqqII")


class BadSnapshot(ValueError):
    """Bytes that are no snapshot of this story."""


def pack(state: Any, base: Any, story: bytes, score: int | None, moves: int | None) -> bytes:
    """`state`, in the order of the engine's `get_state`, beside `base`, the memory in the story file."""
    memory, stack, pc, sp, fp, frames, opcode, random = state
    # the stack grows downwards; below are left-overs of other calls, which nothing reads
    changed, used = np.flatnonzero(memory != base), np.flatnonzero(stack[2 * sp :]) + 2 * sp
    known = (score is not None) + 2 * (moves is not None)
    head = _HEAD.pack(
        _FORMAT, story[:8], score or 0, moves or 0, known, pc, sp, fp, frames, opcode, *map(int, random),
        len(changed), len(used),
    )  # fmt: skip
    return b"".join((head, _places(changed), memory[changed].tobytes(), _places(used), stack[used].tobytes()))


def unpack(data: bytes, base: Any, stack_size: int, story: bytes) -> tuple[Any, int | None, int | None]:
    """The state as `set_state` takes it, score and moves.

    Raises:
        BadSnapshot: `data` is none, is damaged, or belongs to another story.
    """
    if len(data) < _HEAD.size or data[0] != _FORMAT:
        raise BadSnapshot("this is no snapshot of a game")
    _, whose, score, moves, known, pc, sp, fp, frames, opcode, a, b, c, changes, uses = _HEAD.unpack_from(data)
    if whose != story[:8]:
        raise BadSnapshot("this state was made with another story file")
    rest = data[_HEAD.size :]
    words = stack_size // 2
    sound = len(rest) == 3 * (changes + uses) and 0 <= sp <= words and 0 <= fp <= words and 0 <= pc < 1 << 19
    if not sound:
        raise BadSnapshot("this snapshot is damaged")
    memory, stack = base.copy(), np.zeros(stack_size, dtype=np.uint8)
    rest = _patch(memory, rest, changes)
    _patch(stack, rest, uses)
    state = memory, stack, pc, sp, fp, frames, opcode, (a, b, c), b""
    return state, score if known & 1 else None, moves if known & 2 else None


def _places(indices: Any) -> bytes:
    data: bytes = indices.astype("<u2").tobytes()
    return data


def _patch(target: Any, data: bytes, count: int) -> bytes:
    places = np.frombuffer(data, "<u2", count)
    if count and (places.max() >= len(target) or np.any(places[1:] <= places[:-1])):
        raise BadSnapshot("this snapshot is damaged")
    target[places] = np.frombuffer(data, np.uint8, count, 2 * count)
    return data[3 * count :]
