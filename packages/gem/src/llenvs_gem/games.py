"""The upstream's games as objects whose fields can be taken out and put back."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llenvs_gem.catalogue import Entry
from llenvs_gem.corpus import Words
from llenvs_gem.randomness import MOST_WORDS, CountedRandom
from llenvs_gem.redirection import Player, playing, redirect
from llenvs_gem.upstream import module


@dataclass(frozen=True, slots=True)
class Fields:
    """Which attributes of a game make its state, with their types.

    Left out are tables of words, which are the same in every episode, and what says how the next one is made.

    Attributes:
        cls: ``module:class`` below ``gem.envs.game_env``.
        fixed: set when an episode begins, and not changed by a step.
        moving: what steps change.
    """

    cls: str
    fixed: Mapping[str, type]
    moving: Mapping[str, type]


class BadFields(ValueError):
    """Values that are not those of this game."""


def _fields(cls: str, fixed: Mapping[str, type], **moving: type) -> Fields:
    return Fields(cls, {**fixed, "max_turns": int}, {"turn_count": int, **moving})


FIELDS: dict[str, Fields] = {
    "GuessTheNumber": _fields(
        "guess_the_number:GuessTheNumberEnv",
        {"min_number": int, "max_number": int, "game_number": int},
        previous_guesses=set,
    ),
    "Mastermind": _fields(
        "mastermind:MastermindEnv",
        {"code_length": int, "num_numbers": int, "game_code": list},
        previous_guesses=set,
        milestone=int,
    ),
    "Minesweeper": _fields(
        "minesweeper:MinesweeperEnv",
        {"rows": int, "cols": int, "num_mines": int},
        grid=list,
        revealed=list,
        flags=list,
        first_reveal=bool,
    ),
    "Wordle": _fields(
        "wordle:WordleEnv",
        {"word_length": int, "secret_word": str},
        previous_guesses=set,
        milestones=list,
    ),
    "FifteenPuzzle": _fields(
        "fifteen_puzzle:FifteenPuzzleEnv", {"num_rows": int, "greatest_num": int}, board=list
    ),
    "Hangman": _fields(
        "hangman:HangmanEnv", {"word_length": int, "secret_word": str}, board=list, guessed_letters=set
    ),
    "Sudoku": _fields(
        "sudoku:SudokuEnv", {"clues": int, "scale": int, "full_grid": list, "init_num_empty": int}, board=list
    ),
    "TowerofHanoi": _fields("tower_of_hanoi:TowerofHanoiEnv", {"num_disks": int}, board=dict),
    "Game2048": _fields(
        "game_2048:Game2048Env",
        {"target_tile": int, "board_size": int, "init_max_tile_achieved": int},
        board=list,
        max_tile_achieved=int,
    ),
    "Sokoban": _fields(
        "sokoban:SokobanEnv",
        {"dim_room": tuple, "num_boxes": int, "num_gen_steps": int, "room_fixed": np.ndarray},
        room_state=np.ndarray,
        player_position=np.ndarray,
    ),
    "Crosswords": _fields(
        "crosswords:CrosswordsEnv",
        {
            "hardcore": bool,
            "num_words": int,
            "solution": list,
            "clues": dict,
            "placed_words": dict,
            "total_letter_cells": int,
        },
        board=list,
    ),
    "WordSearch": _fields(
        "word_search:WordSearchEnv",
        {"hardcore": bool, "num_words": int, "game_board": list, "placed_words": dict},
        highlighted_positions=set,
        correct_words=set,
        attempts=list,
    ),
}
"""By the name of the game, without release and difficulty."""

# The search for a Sokoban board keeps its best finds in globals of its module.
_generating = threading.Lock()


class Game:
    """One game of the upstream, with a random generator of its own. Used by one thread at a time."""

    def __init__(self, entry: Entry, words: Words | None) -> None:
        redirect()
        name = entry.id.removeprefix("game:").partition("-")[0]
        self.fields = FIELDS[name]
        self._player = Player(CountedRandom(), words)
        self._alone = name == "Sokoban"
        with playing(self._player):
            self._upstream = _made(self.fields.cls, dict(entry.settings))

    def start(self, seed: int) -> tuple[str, dict[str, Any]]:
        """What the upstream's ``reset(seed)`` gives."""
        with playing(self._player):
            if self._alone:
                with _generating:
                    first: tuple[str, dict[str, Any]] = self._upstream.reset(seed=seed)
            else:
                first = self._upstream.reset(seed=seed)
        return first

    def act(self, text: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """What the upstream's ``step(text)`` gives."""
        with playing(self._player):
            shown: tuple[str, float, bool, bool, dict[str, Any]] = self._upstream.step(text)
        return shown

    @property
    def suffix(self) -> str:
        """What belongs at the end of a full prompt: the board, and what to do."""
        with playing(self._player):
            text: str = self._upstream.get_task_suffix()
        return text

    # -- the state ----------------------------------------------------------------------------------------

    def fixed(self) -> list[Any]:
        """The values of `Fields.fixed`, in its order. Not to be changed."""
        have = self._upstream.__dict__
        return [have[name] for name in self.fields.fixed]

    def moving(self) -> list[Any]:
        """The values of `Fields.moving`, in order, and where the random generator stands. Not to be changed."""
        have = self._upstream.__dict__
        values = [have[name] for name in self.fields.moving]
        values.append(list(self._player.random.place))
        return values

    def put_fixed(self, values: Any) -> None:
        """Set what `fixed` gave; `values` become the game's own.

        Raises:
            BadFields: they are not a game's of this kind.
        """
        self._put(self.fields.fixed, values)

    def put_moving(self, values: Any) -> None:
        """Set what `moving` gave; `values` become the game's own.

        Raises:
            BadFields: they are not a game's of this kind.
        """
        place = values[-1] if isinstance(values, list) and values else None
        if not isinstance(place, list) or [type(each) for each in place] != [int, int]:
            raise BadFields("no random generator")
        if not (0 <= place[0] < 1 << 32 and 0 <= place[1] <= MOST_WORDS):
            raise BadFields("a random generator out of range")
        self._put(self.fields.moving, values[:-1])
        self._player.random.go_to((place[0], place[1]))

    def _put(self, fields: Mapping[str, type], values: Any) -> None:
        if not isinstance(values, Sequence) or len(values) != len(fields):
            raise BadFields("too many or too few fields")
        for (name, kind), value in zip(fields.items(), values, strict=True):
            if type(value) is not kind:
                raise BadFields(f"{name} must be {kind.__name__}, is {type(value).__name__}")
        self._upstream.__dict__.update(zip(fields, values, strict=True))


def _made(where: str, settings: dict[str, Any]) -> Any:
    """The upstream's object, constructed but not reset: a constructor's own reset draws a board that nobody plays.

    Two constructors fail on the settings of their ``-random`` ids, which only the reset would replace; they are
    called with what is the same for their purpose.
    """
    name, _, cls = where.partition(":")
    game_class = getattr(module(f"gem.envs.game_env.{name}"), cls)
    drawn = None in settings.values()
    if drawn and cls in ("FifteenPuzzleEnv", "CrosswordsEnv"):
        settings = _PLACEHOLDERS[cls]
    made = game_class.__new__(game_class)
    made.reset = lambda seed=None: None
    game_class.__init__(made, **settings)
    del made.reset
    made._is_random = made._is_random or drawn
    return made


_PLACEHOLDERS: dict[str, dict[str, Any]] = {
    "FifteenPuzzleEnv": {"num_rows": 2, "max_turns": 10},
    "CrosswordsEnv": {"hardcore": False, "max_turns": 20, "num_words": 3},
}
