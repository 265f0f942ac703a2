"""What counts as an action, and what happens with the rest."""

from __future__ import annotations

import pytest
from craftax_play import Make, play

from llenvs import Action
from llenvs_craftax.commands import understand
from llenvs_craftax.environment import CraftaxEnvironment

NAMES = ("noop", "left", "right", "up", "down", "do", "sleep", "place_stone", "make_wood_pickaxe")


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("left", (1,)),
        ("LEFT", (1,)),
        (" Place  Stone ", (7,)),
        ("place-stone", (7,)),
        ("make wood_pickaxe.", (8,)),
        ("`do`", (5,)),
        ("Action: up", (3,)),
        ("**down**", (4,)),
        ("3", (3,)),
        ("0", (0,)),
        ("left, left; do", (1, 1, 5)),
        ("left\nup", (1, 3)),
        ('["left", "do"]', (1, 5)),
        ("left x3", (1, 1, 1)),
        ("left*2, do", (1, 1, 5)),
        ("make wood pickaxe (2)", (8, 8)),
        ("right 2", (2, 2)),
        ("3, 3", (3, 3)),
    ],
)
def test_ways_to_say_an_action(text: str, actions: tuple[int, ...]) -> None:
    assert understand(text, NAMES, 5).actions == actions


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no action was given"),
        ("", "no action was given"),
        (" . ", "no action was given"),
        ("17", "there is no action 17; numbers go from 0 to 8"),
        ("-1", "'-1' is no action"),
        ("jump", "'jump' is no action"),
        ("place_ston", "'place_ston' is no action; did you mean place_stone?"),
        ("left x9", "more than 5 actions at once"),
        ("left x0", "'left x0' repeats an action less than once"),
        ("left, left, left, left, left, left", "more than 5 actions at once"),
        ("left, fly", "'fly' is no action"),
        ("left x999999999999", "'left x999999999999' is no action"),
        ("\u0661", "'\u0661' is no action"),
    ],
)
def test_what_is_no_action(text: str | None, problem: str) -> None:
    understood = understand(text, NAMES, 5)
    assert understood.actions == ()
    assert understood.problem.startswith(problem)


def test_one_action_at_a_time_unless_the_options_allow_more() -> None:
    assert understand("left, do", NAMES, 1).problem == "more than one action at once"


def test_the_last_line_of_a_response_counts(classic: CraftaxEnvironment) -> None:
    _, (result,) = play(classic, "<think>up?</think>The tree is down there.\n\nLEFT", seed=0)
    assert result.info["actions"] == ["left"]
    assert result.resolved_action == Action("left")


def test_another_extractor(make: Make) -> None:
    env = make("craftax-classic-text", answer_extractor={"name": "tag_based", "tag": "action"})
    _, results = play(env, "I go <action>left</action> now", "left", seed=0)
    assert [r.info["actions"] for r in results] == [["left"], []]
    assert results[1].info["invalid_action"] == "no action was given"


def test_a_refused_response_takes_a_turn_and_no_timestep(classic: CraftaxEnvironment) -> None:
    first, (result,) = play(classic, "go west", seed=0)
    prompt = result.next_state.observation.prompt
    assert prompt.startswith("[invalid action] 'go west' is no action. Actions: noop, left, right, up, down, do, ")
    assert prompt.endswith(first.observation.prompt)
    assert result.resolved_action == Action("[invalid action]")
    assert result.next_state.metadata.step == 1
    assert (result.info["timestep"], result.info["actions"]) == (0, [])
    assert [(s.name, s.reward) for s in result.rewards] == [("health", 0.0)]
    assert result.next_state.hidden == first.hidden
    after = classic.step(result.next_state, Action("left"))
    assert "invalid_action" in after.next_state.metadata.info or after.info["actions"] == ["left"]


def test_the_raw_response_can_be_kept(make: Make) -> None:
    env = make("craftax-classic-text", invalid_action_text=None)
    _, (result,) = play(env, "go west", seed=0)
    assert result.resolved_action == Action("go west")
    assert result.next_state.observation.prompt.startswith("'go west' is no action. Actions: noop")


def test_several_actions_are_the_same_actions_in_a_row(make: Make, classic: CraftaxEnvironment) -> None:
    env = make("craftax-classic-text", max_actions=8)
    _, (at_once,) = play(env, "noop, left, up, do x2, right, down, do", seed=0)
    _, one_by_one = play(classic, "noop", "left", "up", "do", "do", "right", "down", "do", seed=0)
    assert at_once.next_state.hidden["arrays"] == one_by_one[-1].next_state.hidden["arrays"]
    assert at_once.rewards.total == 2.0
    assert at_once.info["new_achievements"] == ["collect_wood", "collect_sapling"]
    assert at_once.next_state.metadata.step == 1
    assert at_once.resolved_action == Action("noop, left, up, do, do, right, down, do")


def test_an_action_repeated_by_the_options_stops_with_the_game(make: Make) -> None:
    env = make("craftax-classic", action_repeat=4, max_timesteps=6)
    _, results = play(env, "noop", "noop", seed=0)
    assert [r.info["timestep"] for r in results] == [4, 6]
    assert results[1].truncated


def test_refused_responses_cannot_go_on_for_ever(make: Make) -> None:
    env = make("craftax-classic", max_steps=3)
    _, results = play(env, "a", "b", "c", seed=0)
    assert [r.truncated for r in results] == [False, False, True]
    assert make("craftax-classic").spec.max_steps == 10_000
    assert make("craftax").spec.max_steps == 100_000
