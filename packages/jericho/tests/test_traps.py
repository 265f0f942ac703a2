"""What goes wrong with the upstream alone."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from jericho_play import counts, play

import llenvs
from llenvs import Action, State
from llenvs.core.encoding import dumps
from llenvs.core.errors import (
    EpisodeOver,
    InvalidAction,
    InvalidOption,
    NotInstalled,
    SimulatorCrashed,
    UnknownEnvironment,
)
from llenvs_jericho.adapter import ADAPTER
from llenvs_jericho.commands import LONGEST, clean, is_meta
from llenvs_jericho.environment import BLOCKED, JerichoEnvironment
from llenvs_jericho.simulator import JerichoSimulator, engine_seed

Game = Callable[..., JerichoEnvironment]


def test_a_line_feed_does_not_leak_into_the_next_command(game: Game) -> None:
    env = game("zork1-r119")
    _, _, then = play(env, "open mailbox\nnorth", "inventory")
    assert then.observation.prompt == "You are empty-handed.\n\n"
    first, _ = play(env, "open mailbox\n")
    after = env.step(env.reset(seed=1)[0], Action("inventory")).next_state
    assert after.observation.prompt == "You are empty-handed.\n\n"
    assert counts(first) == (0, 0)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("open mailbox\r\nnorth\0", "open mailbox  north"),
        ("  look\u2028\t", "look"),
        ("\ud800 go", "? go"),
        ("é" * 150, "é" * (LONGEST // 2)),
        ("x" * 500, "x" * LONGEST),
        ("\\boxed{1/2}", "boxed{1/2}"),
        ("", ""),
    ],
)
def test_commands_are_made_harmless(text: str, command: str) -> None:
    assert clean(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "save",
        "SAVE",
        "restore",
        "look. save",
        "north then restart",
        "q",
        "restoring",
        "#record",
        "script",
        "quit game",
    ],
)
def test_commands_about_the_program(text: str) -> None:
    assert is_meta(text, 3)


@pytest.mark.parametrize(
    "text", ["", "save the princess", "quiet", "read script", "say restore", "scripture", "undone"]
)
def test_commands_about_the_game(text: str) -> None:
    assert not is_meta(text, 5)


def test_saving_is_blocked_and_changes_nothing(
    game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = game("zork1-r119")
    states = play(env, "open mailbox", "save", "script", "restart", "take leaflet")
    assert [s.observation.prompt for s in states[2:5]] == [BLOCKED] * 3
    assert [counts(s) for s in states[1:]] == [(0, 1), (0, 1), (0, 1), (0, 1), (0, 2)]
    assert states[-1].observation.prompt == "Taken.\n\n"
    assert list(tmp_path.iterdir()) == []


def test_an_allowed_save_writes_into_the_engines_own_folder(
    game: Game, games: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(games))
    state = play(game("zork1-r119", meta_commands="allow"), "open mailbox", "save")[-1]
    assert state.observation.prompt != BLOCKED
    assert list(tmp_path.iterdir()) == []
    assert sorted(os.listdir(games)) == before


def test_death_and_victory_are_absorbing(game: Game) -> None:
    env = game("lanternhouse")
    end = play(env, "take lantern", "switch on lantern", "down", "take coin", "up", "put coin in bowl")[-1]
    with pytest.raises(EpisodeOver):
        env.step(end, Action("look"))


def test_death_is_an_end_without_victory(game: Game) -> None:
    env = game("zork1-r119")
    way = ["south", "east", "open window", "enter house", "west", "move rug", "open trap door", "down"]
    states = play(env, *way)
    state, result = states[-1], None
    for _ in range(40):  # a grue comes in the dark
        result = env.step(state, Action("north"))
        state = result.next_state
        if result.done:
            break
    assert result is not None
    assert result.terminated
    assert "You have died" in state.observation.prompt
    assert state.hidden["truth"]["ending"] == "lost"
    assert result.rewards["victory"].reward == 0.0
    assert result.rewards["score_gained"].reward == -10
    assert result.rewards["score_share"].reward == counts(state)[0] / 350


def test_a_truncated_episode_has_its_outcome(game: Game) -> None:
    env = game("zork1-r119", max_steps=6, reward="score_share")
    state, _ = env.reset()
    for command in ["north", "north", "climb tree", "take egg", "look", "look"]:
        result = env.step(state, Action(command))
        state = result.next_state
    assert (result.truncated, result.terminated) == (True, False)
    assert result.rewards["score_share"].reward == 5 / 350
    assert result.rewards.total == 5 / 350
    assert env.spec.is_success(result.rewards) is False


def test_seeds() -> None:
    assert [engine_seed(s) for s in (0, 1, 2**31 - 1)] == [0, 1, 2**31 - 1]
    assert {0 < engine_seed(s) < 2**31 for s in (2**31, 2**40, -1, -(2**63))} == {True}


def test_seed_zero_is_a_seed_of_its_own(game: Game) -> None:
    """The upstream takes 0 for the clock."""
    well = ["east", *["examine well"] * 6]
    zero, again = ([s.observation.prompt for s in play(game("lanternhouse"), *well, seed=0)] for _ in range(2))
    assert zero == again
    assert zero != [s.observation.prompt for s in play(game("lanternhouse"), *well, seed=1)]


def test_the_death_of_an_engine_is_not_ours(game: Game) -> None:
    env = game("zork1-r119")
    states = play(env, "open mailbox")
    (idle,) = env._cache._idle.values()
    assert isinstance(idle.simulator, JerichoSimulator)
    os.kill(idle.simulator._process.pid, 9)
    assert env.step(states[-1], Action("take leaflet")).next_state.observation.prompt == "Taken.\n\n"
    assert env.stats.crashed == 1


def test_a_hanging_engine_is_ended(game: Game) -> None:
    env = game("zork1-r119", time_limit=0.000001)
    with pytest.raises(SimulatorCrashed, match=r"zork1-r119.*no answer within"):
        env.reset()


def test_files_that_are_no_stories_are_refused(game: Game, games: str, tmp_path: Path) -> None:
    """The engine would end the process."""
    story = Path(games, "zork1-r119.z3").read_bytes()
    for name, data, said in (
        ("text.z5", b"no story at all", "is no Z-machine story"),
        ("old.z3", b"\6" + story[1:], "is no Z-machine story"),
        ("short.z3", story[:5000], "is cut short: 5000 bytes"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InvalidOption, match=said):
            game(str(path))
    with pytest.raises(InvalidOption, match="cannot be read"):
        game(str(tmp_path / "none.z5"))


def test_games_by_path_by_name_and_all(game: Game, games: str) -> None:
    by_path = game(f"{games}/lanternhouse.z5", games_dir=None)
    assert "The Lantern House" in by_path.reset()[0].observation.prompt
    several = game("all", games=["zork1-r119", f"{games}/lanternhouse.z5"])
    assert len(several) == 2
    assert [several.reset(options={"task_index": i})[1]["location"] for i in (0, 1)] == ["West of House", "Hall"]
    assert [s.name for s in game("all").stories] == [
        "lanternhouse", "tw-simple-dense", "zork1-r119", "zork2-r63", "zork3-r25",
    ]  # fmt: skip
    with pytest.raises(UnknownEnvironment, match="did you mean 'zork1-r119'"):
        game("zork1-r11")
    with pytest.raises(UnknownEnvironment, match="holds no story file of it; Jericho ships no game"):
        game("zork1")
    with pytest.raises(InvalidOption, match="games_dir: is no folder"):
        game("zork1", games_dir=f"{games}/none")


def test_without_the_engine_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [n for n in sys.modules if n.partition(".")[0] == "jericho"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[jericho\]"'):
        llenvs.make("jericho/zork1", games_dir="/")
    assert ADAPTER.list_environments()[0].name == "all"


def test_valid_actions_need_a_game_that_the_engine_knows(game: Game) -> None:
    with pytest.raises(InvalidOption, match=r"does not know zork1-r119\.z3 by its checksum"):
        game("zork1-r119", valid_actions="info")


def test_the_inventory_is_asked_aside(game: Game) -> None:
    asked, plain = game("zork1-r119", inventory=True), game("zork1-r119")
    commands = ["open mailbox", "take leaflet", "south"]
    states, others = play(asked, *commands), play(plain, *commands)
    assert [s.metadata.info["inventory"] for s in states[1:]] == [
        "You are empty-handed.", "You are carrying:\n  A leaflet", "You are carrying:\n  A leaflet",
    ]  # fmt: skip
    assert [counts(s) for s in states] == [counts(s) for s in others]
    assert [s.hidden["snapshot"] for s in states] == [s.hidden["snapshot"] for s in others]


COMMANDS = (
    *("north", "south", "east", "west", "up", "down", "look", "inventory", "take all", "drop all", "open window"),
    *("enter house", "take lamp", "turn on lamp", "open mailbox", "read leaflet", "climb tree", "take egg"),
    *("move rug", "open trap door", "take sword", "kill troll with sword", "wait"),
)


@pytest.mark.parametrize("name", ["zork1-r119", "zork2-r63", "zork3-r25", "lanternhouse", "tw-simple-dense"])
def test_walks_branch_anywhere_in_any_order_from_four_threads(game: Game, name: str) -> None:
    rng = random.Random(name)
    env = game(name, max_live=2)
    transitions = []
    state, _ = env.reset(seed=3)
    for _ in range(50):
        action = Action(rng.choice(COMMANDS))
        result = env.step(state, action)
        transitions.append((state, action, result))
        state = env.reset(seed=4)[0] if result.done else result.next_state
    chosen = rng.sample(transitions, 10) * 3
    rng.shuffle(chosen)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda t: env.step(State.from_json(t[0].to_json()), t[1]), chosen))
    assert [dumps(r) for r in results] == [dumps(t[2]) for t in chosen]


def test_damaged_and_foreign_snapshots_are_refused(game: Game) -> None:
    env, other = game("zork1-r119"), game("zork2-r63")
    state = play(env, "open mailbox")[-1]
    good = state.hidden["snapshot"]
    look = Action("look")
    wrong = [b"", b"\1", good[:-3], good[:60], b"\1" + b"\xff" * 90, good[:9] + b"\xff" * 60 + good[69:]]
    for snapshot in wrong:
        with pytest.raises(InvalidAction, match=r"snapshot|another story file"):
            env.step(replace(state, hidden={**state.hidden, "snapshot": snapshot}), look)
    theirs = play(other, "look")[-1].hidden["snapshot"]
    with pytest.raises(InvalidAction, match="this state was made with another story file"):
        env.step(replace(state, hidden={**state.hidden, "snapshot": theirs}), look)
    assert env.step(state, look).next_state.hidden["truth"]["moves"] == 2


def test_a_backslash_does_not_hang_the_engine(game: Game) -> None:
    state = play(game("zork1-r119", time_limit=20), "\\boxed{1/2}")[-1]
    assert state.observation.prompt.startswith("I don't know the word")
