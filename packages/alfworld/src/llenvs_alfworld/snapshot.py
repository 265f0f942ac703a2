"""Where an episode stands, as bytes that mean the same in any process.

Little-endian: `_HEAD`, then for values (`_VALUES`) the touched variables (two bytes each, rising) and a byte of
flags for each, or for commands (`_COMMANDS`) those accepted so far, one a line, in UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from llenvs_alfworld.sas import FALSE, TRUE

# kind, game (first bytes of the SHA-256 of its file), number of variables or commands
_HEAD = struct.Struct("<B8sI")
_VALUES, _COMMANDS = 1, 2
_DIFFERS, _TOLD_TRUE = 1, 2


class BadSnapshot(ValueError):
    """Bytes that are no snapshot of this game."""


@dataclass(frozen=True, slots=True)
class Position:
    """A state of a game, by what an episode changed.

    Attributes:
        told: variables that an effect of a command was about, and the value that it was said to get. The game's
            texts go by these: they tell a fact that was made false from one that never was true, and they take an
            effect whose conditions do not hold for one that happened.
        differing: variables whose value is not the initial one; all of them are in `told`.
    """

    told: Mapping[int, int] = field(default_factory=dict)
    differing: frozenset[int] = frozenset()


def pack_values(position: Position, game: bytes) -> bytes:
    """`position` in the game whose file has the SHA-256 `game`."""
    touched = sorted(position.told)
    flags = bytes(_DIFFERS * (v in position.differing) + _TOLD_TRUE * (position.told[v] == TRUE) for v in touched)
    return _HEAD.pack(_VALUES, game[:8], len(touched)) + struct.pack(f"<{len(touched)}H", *touched) + flags


def pack_commands(commands: tuple[str, ...], game: bytes) -> bytes:
    """The commands accepted so far, in the game whose file has the SHA-256 `game`."""
    return _HEAD.pack(_COMMANDS, game[:8], len(commands)) + "\n".join(commands).encode()


def unpack(data: bytes, game: bytes, variables: int, derived: frozenset[int]) -> Position | tuple[str, ...]:
    """What was packed: a position, or the commands that lead to it.

    Args:
        data: the snapshot, from anywhere.
        game: SHA-256 of the game's file.
        variables: how many the game has.
        derived: those that no snapshot may hold.

    Raises:
        BadSnapshot: `data` is none, is damaged, or belongs to another game.
    """
    if len(data) < _HEAD.size or data[0] not in (_VALUES, _COMMANDS):
        raise BadSnapshot("this is no snapshot of a game")
    kind, whose, count = _HEAD.unpack_from(data)
    if whose != game[:8]:
        raise BadSnapshot("this state was made with another game file")
    rest = data[_HEAD.size :]
    if kind == _COMMANDS:
        try:
            commands = tuple(rest.decode().split("\n")) if rest else ()
        except UnicodeDecodeError:
            raise BadSnapshot("this snapshot is damaged") from None
        if len(commands) != count:
            raise BadSnapshot("this snapshot is damaged")
        return commands
    if len(rest) != 3 * count:
        raise BadSnapshot("this snapshot is damaged")
    touched, flags = struct.unpack_from(f"<{count}H", rest), rest[2 * count :]
    rising = all(a < b for a, b in pairwise(touched))
    known = all(variable < variables and variable not in derived for variable in touched)
    if not (rising and known and max(flags, default=0) <= _DIFFERS + _TOLD_TRUE):
        raise BadSnapshot("this snapshot is damaged")
    told = {v: TRUE if flag & _TOLD_TRUE else FALSE for v, flag in zip(touched, flags, strict=True)}
    return Position(told, frozenset(v for v, flag in zip(touched, flags, strict=True) if flag & _DIFFERS))
