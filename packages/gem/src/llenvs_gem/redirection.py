"""Games that draw from a generator of their own instead of the process's global one.

The upstream's games draw from the global `random`, reseed it at each reset, and load word lists from wherever
NLTK looks. Their modules are given stand-ins for these names, which serve whoever plays in this thread, and are
what they stand for to everybody else. So a game depends on nothing that other threads do, and leaves nothing
behind.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llenvs_gem.corpus import Words
from llenvs_gem.randomness import CountedRandom
from llenvs_gem.upstream import module

_MODULES = tuple(
    f"gem.envs.game_env.{name}"
    for name in (
        *("guess_the_number", "mastermind", "minesweeper", "wordle", "fifteen_puzzle", "hangman", "sudoku"),
        *("tower_of_hanoi", "game_2048", "sokoban.sokoban", "crosswords.crosswords", "word_search"),
    )
)


@dataclass(frozen=True, slots=True)
class Player:
    """What a game in play draws from and reads."""

    random: CountedRandom
    words: Words | None = None


class _Playing(threading.local):
    player: Player | None = None


_playing = _Playing()
_lock = threading.Lock()
_done = False


@contextmanager
def playing(player: Player) -> Iterator[None]:
    """Within it, the games that run in this thread are `player`'s."""
    before, _playing.player = _playing.player, player
    try:
        yield
    finally:
        _playing.player = before


class _Random:
    def __getattr__(self, name: str) -> Any:
        player = _playing.player
        return getattr(random if player is None else player.random, name)


class _Corpus:
    def __init__(self, original: Any) -> None:
        self._original = original

    def words(self, fileids: str = "en") -> Any:
        player = _playing.player
        if player is None or player.words is None:
            return self._original.words(fileids)
        return player.words.words(fileids)


class _Nltk:
    """The module `nltk`, whose downloads are no matter of a game that has its words."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def download(self, *args: Any, **kwargs: Any) -> Any:
        return self._original.download(*args, **kwargs) if _playing.player is None else True


def redirect() -> None:
    """Give the upstream's game modules their stand-ins; once, and it imports the upstream."""
    global _done
    if _done:
        return
    modules = [module(name) for name in _MODULES]
    seeding = module("gem.utils.seeding")
    with _lock:
        if _done:
            return
        for each in modules:
            each.random = _Random()
            if hasattr(each, "words"):
                each.words = _Corpus(each.words)
            if hasattr(each, "nltk"):
                each.nltk = _Nltk(each.nltk)
        seeding.set_seed = _set_seed(seeding.set_seed)
        _done = True


def _set_seed(original: Any) -> Any:
    def set_seed(seed: int | None = None) -> None:
        """Seed the player's generator; without a player, the global ones."""
        player = _playing.player
        if player is None:
            original(seed)
        else:
            player.random.seed(seed)

    return set_seed
