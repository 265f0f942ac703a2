"""What goes wrong with the upstream alone, and with states that come from anywhere."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from gem_play import boxed, play, prompt, random_move, rewards

import llenvs
from llenvs import Action, Environment, State
from llenvs.core.errors import InvalidAction, InvalidOption
from llenvs_gem.catalogue import ENTRIES, Kind, Needs
from llenvs_gem.corpus import CorpusMissing, Words, find_corpus
from llenvs_gem.games import FIELDS, Game
from llenvs_gem.snapshot import split

Env = Callable[..., Environment[Any]]
GAMES = sorted(FIELDS)


def test_every_game_keeps_its_fixed_fields_and_captures_all_others(words: str) -> None:
    left_out = {
        *("all_words", "available_words", "word_list", "word_data"),  # tables of words
        *("_is_random", "only_real_words", "duplicate_numbers", "hardcore", "action_space", "box_mapping"),
    }
    for name in GAMES:
        entry = ENTRIES[f"game:{name}-v0-easy"]
        game, rng = Game(entry, Words(find_corpus(words))), random.Random(name)
        game.start(7)
        before = repr(game.fixed())
        for _ in range(30):
            game.act(random_move(entry.id, rng, nonsense=0.0))
        assert repr(game.fixed()) == before
        named = set(game.fields.fixed) | set(game.fields.moving)
        assert set(game._upstream.__dict__) - named <= left_out


def test_states_are_small(env: Env) -> None:
    game = env("game:Game2048-v0-easy")
    state = play(game, "left", "up", "right")[-1].next_state
    assert len(state.hidden["snapshot"]) < 150


def test_other_threads_draw_from_the_global_generator_and_change_nothing(env: Env) -> None:
    game = env("game:Game2048-v0-hard")
    moves = ["left", "up", "right", "down"] * 8
    alone = [prompt(r) + r.next_state.metadata.info["suffix"] for r in play(game, *moves)]
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            random.random()
            random.seed(1)

    drawing = threading.Thread(target=draw)
    drawing.start()
    try:
        again = [prompt(r) + r.next_state.metadata.info["suffix"] for r in play(game, *moves)]
    finally:
        stop.set()
        drawing.join()
    assert again == alone


def test_games_started_at_once_are_those_started_alone(env: Env) -> None:
    """The upstream's search for Sokoban boards keeps its finds in globals."""
    game = env("game:Sokoban-v0-easy", max_live=4)
    alone = [game.reset(options={"task_index": i})[0] for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: game.reset(options={"task_index": i})[0], range(8)))
    assert together == alone


def test_seeds_are_the_base_and_the_index(env: Env) -> None:
    one, other = env("game:Sudoku-v0-easy", seed=40), env("game:Sudoku-v0-easy")
    shown = [e.reset(options={"task_index": i})[1]["suffix"] for e, i in ((one, 2), (other, 0), (other, 1))]
    assert shown[0] == shown[1] != shown[2]


def test_an_action_that_cannot_be_read_may_just_cost_a_turn(env: Env) -> None:
    game = env("game:GuessTheNumber-v0-easy", invalid_action="continue")
    results = play(game, "", "2")
    assert rewards(results) == [-0.1, 1.0]
    assert [r.done for r in results] == [False, True]
    assert prompt(results[1]).endswith("in 2 turns.")
    last = play(game, "", "", "", "")[-1]
    assert (last.terminated, last.truncated) == (True, True)
    assert rewards([last]) == [-0.1]


@pytest.mark.parametrize("name", GAMES)
def test_numbers_that_python_refuses_to_read_are_no_crash(env: Env, name: str, words: str) -> None:
    options = {"nltk_data": words} if ENTRIES[f"game:{name}-v0-easy"].needs is Needs.CORPUS else {}
    game = env(f"game:{name}-v0-easy", **options)
    digits = "1" * 6000
    for move in (digits, f"{digits} 1", f"{digits} 1 A", f"reveal {digits} 0", f"0 0 0 {digits}", f"1 2 {digits}"):
        (result,) = play(game, move)
        assert result.rewards["reward"].reward in (0.0, -0.1)


def test_our_own_limit_truncates(env: Env) -> None:
    game = env("game:GuessTheNumber-v0-hard", max_steps=2)
    results = play(game, "1", "2")
    assert [(r.terminated, r.truncated) for r in results] == [(False, False), (False, True)]
    assert results[-1].rewards["success"].reward == 0.0


def test_prompts(env: Env) -> None:
    event, suffix = env("game:Sudoku-v0-easy"), env("game:Sudoku-v0-easy", prompt="suffix")
    full = env("game:Sudoku-v0-easy", prompt="full")
    first = [e.reset(options={"task_index": 0})[0].observation.prompt for e in (event, suffix, full)]
    board = event.reset(options={"task_index": 0})[1]["suffix"]
    assert first[1] == first[2] == first[0] + board
    results = [play(e, "1 1 1", "1 2 4")[-1] for e in (event, suffix, full)]
    said, board = prompt(results[0]), results[0].next_state.metadata.info["suffix"]
    assert prompt(results[1]) == f"{said}\n{board}"
    before = prompt(play(event, "1 1 1")[-1])
    assert prompt(results[2]) == f"{first[0]}{before}\n{said}\n{board}"


def test_damaged_and_foreign_snapshots_are_refused(env: Env) -> None:
    game = env("game:Minesweeper-v0-easy")
    state = play(game, "reveal 0 0")[-1].next_state
    action = Action(boxed("flag 4 4"))
    good = state.hidden["snapshot"]
    fixed, moving = split(good)
    theirs = play(env("game:Sudoku-v0-easy"), "1 1 1")[-1].next_state.hidden["snapshot"]
    wrong = [b"", b"\1", good[:-2], good[:5], b"\2" + good[1:], fixed, fixed + b"[]", fixed + b"[[1],[]]", theirs]
    wrong += [fixed + moving.replace(b"[42,", b'["x",'), fixed + moving.replace(b"[42,", b"[-1,")]
    wrong += [fixed + moving.replace(b"]],", b"],99999999999999],"), fixed + b"\xff" + moving]
    for snapshot in wrong:
        with pytest.raises(InvalidAction, match="this state cannot be stepped"):
            game.step(replace(state, hidden={**state.hidden, "snapshot": snapshot}), action)
    again = game.step(State.from_json(state.to_json()), action)
    assert again.next_state.hidden["truth"] == {"won": False}


def test_a_state_that_claims_endless_draws_is_refused(env: Env) -> None:
    game = env("game:Game2048-v0-easy")
    state = play(game, "left")[-1].next_state
    snapshot = state.hidden["snapshot"]
    place = snapshot[snapshot.rindex(b"[42,") :].split(b"]")[0]
    hostile = snapshot.replace(place, b"[42,99999999999999")
    with pytest.raises(InvalidAction, match="a random generator out of range"):
        game.step(replace(state, hidden={**state.hidden, "snapshot": hostile}), Action(boxed("up")))


def test_without_the_corpus_the_command_is_said(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(CorpusMissing, match=r"run: python -m nltk\.downloader words"):
        llenvs.make("gem/game:Wordle-v0-easy")
    with pytest.raises(InvalidOption, match="nltk_data: has no corpora"):
        llenvs.make("gem/game:Wordle-v0-easy", nltk_data=str(tmp_path))


def test_two_folders_of_words_in_one_process(env: Env, words: str, tmp_path: Any) -> None:
    folder = tmp_path / "corpora" / "words"
    folder.mkdir(parents=True)
    for name in ("en", "en-basic"):
        (folder / name).write_text("zoo\n", encoding="utf-8")
    own, other = env("game:Wordle-v0-easy", nltk_data=str(tmp_path)), env("game:Wordle-v0-easy", nltk_data=words)
    assert rewards(play(own, "zoo")) == [1.0]
    assert rewards(play(other, "zoo")) != [1.0]
    assert rewards(play(own, "zoo", task_index=5)) == [1.0]


def test_every_game_works_offline_or_says_what_it_needs() -> None:
    kinds = {entry.needs for entry in ENTRIES.values() if entry.kind is Kind.GAME}
    assert kinds == {Needs.NOTHING, Needs.CORPUS, Needs.BROKEN}
