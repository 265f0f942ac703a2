"""A random generator whose state is two numbers."""

from __future__ import annotations

import random
from typing import Any

_CHUNK = 1 << 16  # words drawn at once when catching up
MOST_WORDS = 1 << 28
"""Words that a state may claim to have drawn: more than the longest search for a board takes."""


class CountedRandom(random.Random):
    """`random.Random` that counts what it gives, so that its state is its seed and a count.

    Both kinds of raw draws, ``random()`` and ``getrandbits(k)``, take 32-bit words of the Mersenne Twister in
    order: two, and one for each begun 32 bits (CPython, ``_randommodule.c``). A generator with the same seed that
    has dropped as many words goes on alike. That is a few bytes instead of the 2.5 kB of the twister, and it is
    only paid for by those who draw again.
    """

    def __init__(self) -> None:
        self._origin, self._words, self._drawn = 0, 0, 0
        super().__init__(0)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Begin anew; the seed must be an integer."""
        if not isinstance(a, int):
            raise TypeError(f"the seed must be an integer, got {type(a).__name__}")
        super().seed(a, version)
        self._origin, self._words, self._drawn = a, 0, 0

    @property
    def place(self) -> tuple[int, int]:
        """The seed, and how many words were taken since."""
        return self._origin, self._words

    def go_to(self, place: tuple[int, int]) -> None:
        """Go where `place` was taken; the words between are drawn when they are needed."""
        origin, words = place
        if origin != self._origin or words < self._drawn:
            super().seed(origin)
            self._origin, self._drawn = origin, 0
        self._words = words

    def random(self) -> float:
        """See `random.Random`."""
        if self._drawn != self._words:
            self._catch_up()
        self._words += 2
        self._drawn = self._words
        return super().random()

    def getrandbits(self, k: int) -> int:
        """See `random.Random`."""
        if self._drawn != self._words:
            self._catch_up()
        self._words += (k + 31) // 32
        self._drawn = self._words
        return super().getrandbits(k)

    def _catch_up(self) -> None:
        while self._drawn < self._words:
            step = min(_CHUNK, self._words - self._drawn)
            super().getrandbits(32 * step)
            self._drawn += step

    def getstate(self) -> Any:
        """Not kept: use `place`."""
        raise NotImplementedError("use place")

    def setstate(self, state: Any) -> None:
        """Not kept: use `go_to`."""
        raise NotImplementedError("use go_to")
