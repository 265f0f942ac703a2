"""What the games show, seen at the upstream and in the games themselves."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from jericho_play import counts, play

from llenvs import Action
from llenvs.core.errors import TaskIndexOutOfRange, UnknownEnvironment
from llenvs_jericho.environment import JerichoEnvironment

Game = Callable[..., JerichoEnvironment]


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**40, -5])
def test_zork_begins_alike_with_any_seed(game: Game, seed: int) -> None:
    first, then = play(game("zork1-r119"), "open mailbox", seed=seed)
    assert first.observation.prompt.endswith("There is a small mailbox here.\n\n")
    assert counts(first) == (0, 0)
    assert then.observation.prompt == "Opening the small mailbox reveals a leaflet.\n\n"
    assert counts(then) == (0, 1)
    assert then.metadata.info["location"] == "West of House"


def test_first_points_of_zork(game: Game) -> None:
    commands = ["open mailbox", "take leaflet", "north", "north", "climb tree", "take egg"]
    more = ["down", "south", "east", "open window", "enter house"]
    rest = ["west", "take lamp", "take sword", "move rug", "open trap door", "turn on lamp", "down"]
    states = play(game("zork1-r119"), *commands, *more, *rest)
    assert counts(states[6]) == (5, 6)
    assert counts(states[11]) == (15, 11)
    assert states[11].metadata.info["location"] == "Kitchen"
    assert counts(states[18]) == (40, 18)
    assert states[18].observation.prompt.startswith("The trap door crashes shut")
    assert states[18].metadata.info["location"] == "Cellar"


def test_the_walkthrough_makes_all_points_of_zork(game: Game) -> None:
    env = game("zork1-r119")
    seed, commands = env.walkthrough(like="zork1")
    assert (seed, len(commands)) == (12, 396)
    state, _ = env.reset(seed=seed)
    gained = {}
    for number, command in enumerate(commands, 1):
        result = env.step(state, Action(command))
        state = result.next_state
        if result.rewards["score_gained"].reward:
            gained[number] = result.rewards["score_gained"].reward
        assert result.done == (number == 396)
    assert (gained[4], gained[9], gained[25]) == (5, 10, 25)
    assert list(gained)[:3] == [4, 9, 25]
    assert sum(gained.values()) == 350
    assert counts(state) == (350, 394)
    assert "rank of Master Adventurer" in state.observation.prompt
    assert result.terminated
    assert (result.rewards["score_share"].reward, result.rewards["victory"].reward) == (1.0, 1.0)
    assert env.spec.is_success(result.rewards) is True


def test_a_walkthrough_is_asked_for_by_a_known_name(game: Game) -> None:
    env = game("zork1-r119")
    with pytest.raises(UnknownEnvironment, match="for another release of a known game give like="):
        env.walkthrough()
    with pytest.raises(UnknownEnvironment, match="did you mean 'zork1'"):
        env.walkthrough(like="zork1x")
    with pytest.raises(TaskIndexOutOfRange):
        env.walkthrough(1)


@pytest.mark.parametrize(
    ("seed", "blows", "said"),
    [(1, 3, "The fatal blow strikes the troll square in the heart"), (2, 4, "It's curtains for the troll")],
)
def test_chance_is_the_seeds(game: Game, seed: int, blows: int, said: str) -> None:
    way = "south;east;open window;enter house;west;take lamp;take sword;move rug;open trap door;turn on lamp;down"
    states = play(game("zork1-r119"), *way.split(";"), "north", *["kill troll with sword"] * blows, seed=seed)
    assert said in states[-1].observation.prompt
    assert said not in states[-2].observation.prompt


def test_textworld_gains_are_right_after_branching(game: Game) -> None:
    env = game("tw-simple-dense")
    commands = [
        "open antique trunk",
        "take old key from antique trunk",
        "unlock wooden door with old key",
        "open wooden door",
        "go east",
        "go south",
        "take milk from couch",
        "go north",
        "put milk on stove",
    ]
    state, info = env.reset(seed=1)
    assert (info["moves"], state.hidden["truth"]["max_score"]) == (1, 8)
    gained, states = [], [state]
    for command in commands:
        result = env.step(states[-1], Action(command))
        states.append(result.next_state)
        gained.append(result.rewards["score_gained"].reward)
    assert gained == [1, 1, 1, 1, 1, 1, 1, 0, 1]
    assert result.terminated
    assert (result.rewards["victory"].reward, result.rewards["score_share"].reward) == (1.0, 1.0)
    again = env.step(states[2], Action(commands[2]))  # the upstream says -4
    assert again.rewards["score_gained"].reward == 1
    assert again.next_state == states[3]


def test_a_version_5_game_is_read_from_its_status_line(game: Game) -> None:
    commands = ["take lantern", "switch on lantern", "down", "take coin", "up", "put coin in bowl"]
    env = game("lanternhouse")
    states = play(env, *commands)
    assert [counts(s)[0] for s in states[1:]] == [1, 2, 2, 3, 3, 4]
    assert "*** You have won ***" in states[-1].observation.prompt
    assert states[-1].is_terminal
    rewards = env.compute_rewards(states[-2], Action(commands[-1]), states[-1])
    assert [(s.name, s.reward) for s in rewards] == [("score_gained", 1.0), ("score_share", 1.0), ("victory", 1.0)]
    assert [s.metadata.info["location"] for s in states[:5]] == ["Hall", "Hall", "Hall", "Cellar", "Cellar"]
    assert not any("Score:" in s.observation.prompt for s in states)


def test_random_numbers_of_a_version_5_game(game: Game) -> None:
    states = play(game("lanternhouse"), "east", *["examine well"] * 8)
    said = " ".join(s.observation.prompt for s in states[2:])
    assert re.findall(r"A pebble counts (\d)\.", said) == ["6", "2", "4", "2", "3", "2", "6", "2"]


def test_zork_2_and_3(game: Game) -> None:
    two = play(game("zork2-r63"), "take lamp", "take sword", "turn on lamp", "south", "score")
    assert counts(two[0]) == (0, 0)
    assert "A strangely familiar brass lantern is lying on the ground." in two[0].observation.prompt
    assert "0 (total of 400 points), in 4 moves" in two[-1].observation.prompt
    three = play(game("zork3-r25"), "take lamp", "south", "score", "diagnose")
    assert "It is pitch black. You are likely to be eaten by a grue." in three[2].observation.prompt
    assert "Your potential is 0 of a possible 7, in 2 moves." in three[3].observation.prompt
    assert [counts(s)[1] for s in three] == [0, 1, 2, 2, 3]
    assert [s.hidden["truth"]["max_score"] for s in (two[0], three[0])] == [400, 7]


def test_our_text_is_the_upstreams_but_for_the_status_line(game: Game, games: str) -> None:
    import warnings

    import jericho

    commands = ["open mailbox", "read leaflet", "take leaflet", "s", "e", "open window", "in", "xyzzy", "wait"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = jericho.FrotzEnv(f"{games}/zork1-r119.z3", seed=7)
    texts = [alone.reset()[0], *(alone.step(c)[0] for c in commands)]
    kept = play(game("zork1-r119", status_line=True), *commands, seed=7)
    assert [s.observation.prompt for s in kept] == texts
    ours = play(game("zork1-r119"), *commands, seed=7)
    assert [s.observation.prompt for s in ours[1:]] == [text.split("\n", 1)[1] for text in texts[1:]]
    assert texts[1].startswith("> West of House  ")
    assert ours[0].observation.prompt == texts[0]
