"""Reading the memory of a version 3 game (The Z-Machine Standards Document 1.1, sections 3, 8.2 and 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", " \n0123456789.,!?_#'\"/\\-:()")


@dataclass(frozen=True, slots=True)
class Status:
    """What the status line would show now: number of the room object, score, moves."""

    room: int
    score: int
    moves: int


def has_score(story: Sequence[int]) -> bool:
    """Whether the status line of a version 3 story shows score and moves, not the time: flags 1, bit 1."""
    return story[0] == 3 and not story[1] & 0b10


def read_status(memory: Sequence[int]) -> Status:
    """The first three global variables: room, score (signed), moves."""
    table = _word(memory, 12)
    score = _word(memory, table + 2)
    return Status(_word(memory, table), score - 0x10000 if score & 0x8000 else score, _word(memory, table + 4))


def object_name(memory: Sequence[int], number: int) -> str:
    """Short name of object `number` (1 to 255; "" for any other). `memory` is the whole story, then as it was."""
    if not 1 <= number <= 255:
        return ""
    # 31 words of property defaults, then nine bytes an object, the last two the address of its properties
    entry = _word(memory, 10) + 62 + 9 * (number - 1)
    properties = _word(memory, entry + 7)
    return _text(memory, properties + 1, memory[properties]) if memory[properties] else ""


def _text(memory: Sequence[int], address: int, words: int, *, may_abbreviate: bool = True) -> str:
    """Z-characters from `address` on: three to a word, until the top bit or `words` of them (0: no bound)."""
    codes: list[int] = []
    count = 0
    while words == 0 or count < words:
        word = _word(memory, address + 2 * count)
        codes += [word >> 10 & 31, word >> 5 & 31, word & 31]
        count += 1
        if word & 0x8000:
            break
    shown, alphabet, at = "", 0, 0
    while at < len(codes):
        code, now = codes[at], alphabet
        alphabet, at = 0, at + 1
        if code in (1, 2, 3):
            if may_abbreviate and at < len(codes):
                entry = _word(memory, 24) + 2 * (32 * (code - 1) + codes[at])
                shown += _text(memory, 2 * _word(memory, entry), 0, may_abbreviate=False)
            at += 1
        elif code in (4, 5):
            alphabet = code - 3
        elif code == 0:
            shown += " "
        elif now == 2 and code == 6:
            if at + 1 < len(codes):
                shown += chr(codes[at] << 5 | codes[at + 1])
            at += 2
        else:
            shown += _ALPHABETS[now][code - 6]
    return shown


def _word(memory: Sequence[int], address: int) -> int:
    return int(memory[address]) << 8 | int(memory[address + 1])
