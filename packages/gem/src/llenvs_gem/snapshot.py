"""Snapshots of a game: its fields as bytes that mean the same in any process.

Layout: the byte 1, four bytes with the length of what follows (little-endian), the fixed fields, the moving ones.
Both are text of `llenvs.core.encoding`; the fixed part is written once an episode.
"""

from __future__ import annotations

import struct
from typing import Any

from llenvs.core.encoding import dumps, loads
from llenvs.core.errors import EncodingFailed

_HEAD = struct.Struct("<BI")
_FORMAT = 1


class BadSnapshot(ValueError):
    """Bytes that are no snapshot of a game."""


def pack_fixed(values: list[Any]) -> bytes:
    """The first part of all snapshots of an episode."""
    text = dumps(values).encode()
    return _HEAD.pack(_FORMAT, len(text)) + text


def pack(fixed: bytes, moving: list[Any]) -> bytes:
    """A snapshot, of what `pack_fixed` gave and the moving fields."""
    return fixed + dumps(moving).encode()


def split(snapshot: bytes) -> tuple[bytes, bytes]:
    """What `pack_fixed` gave, and the encoded moving fields.

    Raises:
        BadSnapshot: it is none.
    """
    if len(snapshot) < _HEAD.size:
        raise BadSnapshot("this is no snapshot of a game")
    kind, length = _HEAD.unpack_from(snapshot)
    end = _HEAD.size + length
    if kind != _FORMAT or len(snapshot) < end:
        raise BadSnapshot("this is no snapshot of a game")
    return snapshot[:end], snapshot[end:]


def unpack_fixed(fixed: bytes) -> Any:
    """The values that `pack_fixed` was given.

    Raises:
        BadSnapshot: it is damaged.
    """
    return unpack_moving(fixed[_HEAD.size :])


def unpack_moving(moving: bytes) -> Any:
    """The moving fields that `pack` was given.

    Raises:
        BadSnapshot: they are damaged.
    """
    try:
        return loads(moving)
    except (EncodingFailed, UnicodeDecodeError) as error:
        raise BadSnapshot(f"this snapshot is damaged: {error}") from None
