"""Scripted players win: the games can be played to reward 1 from what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gem_play import boxed
from solvers import player_for

from llenvs import Action, Environment
from llenvs.core.search import beam_search

Env = Callable[..., Environment[Any]]
WINNABLE = (
    *("GuessTheNumber-v0-easy", "GuessTheNumber-v0-hard", "GuessTheNumber-v0-random"),
    *("TowerofHanoi-v0-easy", "TowerofHanoi-v0-hard", "TowerofHanoi-v0-random"),
    *("Mastermind-v0-easy", "Mastermind-v0-hard", "Mastermind-v0-random"),
    *("Sudoku-v0-easy", "Sudoku-v0-hard", "Sudoku-v0-random", "Sokoban-v0-easy"),
)
OF_WORDS = (
    *("Wordle-v0-easy", "Wordle-v0-hard", "Wordle-v0-random", "Hangman-v0-easy", "Hangman-v0-hard"),
    *("Hangman-v0-random", "WordSearch-v0-easy"),
)


def _won(env: Environment[Any], task_index: int, words: list[str]) -> tuple[float, float, bool]:
    """The sum of rewards, success, and whether the player had a plan at all."""
    state, info = env.reset(options={"task_index": task_index})
    player = player_for(env.spec.name, words)
    assert player is not None
    moves = player(state.observation.prompt, info.get("suffix", ""))
    total, result = 0.0, None
    move = next(moves, None)
    while move is not None:
        result = env.step(state, Action(boxed(move)))
        total += result.rewards.total
        state = result.next_state
        if result.done:
            break
        try:
            move = moves.send((state.observation.prompt, state.metadata.info["suffix"]))
        except StopIteration:
            break
    if result is None:
        return 0.0, 0.0, False
    success = result.rewards.by_name("success")
    return total, 0.0 if success is None else success.reward or 0.0, True


@pytest.mark.parametrize("name", WINNABLE)
def test_players_win(env: Env, name: str) -> None:
    game = env(f"game:{name}")
    for task_index in range(3):
        assert _won(game, task_index, []) == (pytest.approx(1.0), 1.0, True)


@pytest.mark.parametrize("name", OF_WORDS)
def test_players_who_know_the_words_win(env: Env, short_words: str, name: str) -> None:
    words = Path(short_words, "corpora", "words", "en-basic").read_text(encoding="utf-8").split()
    game = env(f"game:{name}", nltk_data=short_words)
    for task_index in range(5):
        assert _won(game, task_index, words) == (pytest.approx(1.0), 1.0, True)


@pytest.mark.parametrize("name", ["FifteenPuzzle-v0-easy"])
def test_boards_that_can_be_solved_are(env: Env, name: str) -> None:
    """About half of them: the upstream shuffles tiles instead of moving them."""
    game = env(f"game:{name}")
    played = [_won(game, task_index, []) for task_index in range(40)]
    solved = [outcome for outcome in played if outcome[2]]
    assert solved == [(1.0, 1.0, True)] * len(solved)
    assert len(solved) == 16


def test_search_reaches_64(env: Env) -> None:
    """Every state can be stepped with its own chance, so a search finds what the player cannot foresee."""
    game = env("game:Game2048-v0-easy")
    state, _ = game.reset(options={"task_index": 0})
    moves = [boxed(way) for way in ("left", "down", "right", "up")]

    def merged(state: Any) -> float:
        rows = [] if state.is_terminal else state.metadata.info["suffix"].splitlines()[1:5]
        tiles = [int(tile) for row in rows for tile in row.split() if tile != "."]
        return 0.15 * sum(tile * tile for tile in tiles) / 64**2

    found = beam_search(game, state, lambda s: moves, value=merged, width=8, max_depth=50)
    assert found.score == pytest.approx(1.0)
    assert game.spec.is_success(found.trajectory.transitions[-1].rewards)
