"""What the games show, seen at the upstream."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from alfworld_play import CLEAN, COOL, HEAT, LOOK, PLACE, TWO, play, reward, texts

from llenvs import Action
from llenvs_alfworld.environment import AlfworldEnvironment

Alfworld = Callable[..., AlfworldEnvironment]
NOTHING = "Nothing happens."
SPLITS = ("train", "eval_in_distribution", "eval_out_of_distribution")


def test_clean(alfworld: Alfworld) -> None:
    env = alfworld()
    state, info = env.reset(options={"task_index": CLEAN})
    kinds = [command.split()[0] for command in info["admissible_commands"]]
    assert (len(kinds), kinds.count("go")) == (14, 11)
    assert {"help", "inventory", "look"} < set(info["admissible_commands"])
    assert state.observation.prompt.startswith(
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room."
    )
    goal = "Your task is to: clean some soapbar and put it in garbagecan."
    assert state.observation.prompt.endswith(f"\n\n{goal}")
    assert state.observation.task == goal
    results = play(
        env,
        "Go to sinkbasin 2",
        " go to sinkbasin 2 \n",
        "go to garbagecan 1",
        "take soapbar 1 from garbagecan 1",
        "put soapbar 1 in/on garbagecan 1",
        "go to sinkbasin 2",
        "clean soapbar 1 with sinkbasin 2",
        "examine soapbar 1",
        "go to garbagecan 1",
        "move soapbar 1 to garbagecan 1",
        task=CLEAN,
    )
    said = texts(results)
    assert said[0] == said[4] == NOTHING
    assert said[1] == "You arrive at sinkbasin 2. On the sinkbasin 2, you see nothing."
    assert said[7] == "This is a clean soapbar 1."
    assert [r.terminated for r in results] == [False] * 9 + [True]
    assert [reward(r, "valid_action") for r in results] == [0, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    # one of the two conditions holds at the beginning: the bar lies where it belongs, but is not clean
    assert state.hidden["truth"]["goal_conditions"] == 0.5
    assert [reward(r, "progress") for r in results] == [0, 0, 0, -0.5, 0, 0, 0.5, 0, 0, 0.5]
    last = results[-1]
    assert (reward(last, "task_completion"), reward(last, "goal_conditions"), last.rewards.total) == (
        1.0,
        1.0,
        1.0,
    )
    assert env.spec.is_success(last.rewards) is True
    assert all(r.rewards.total == 0.0 and env.spec.is_success(r.rewards) is None for r in results[:-1])


def test_place(alfworld: Alfworld) -> None:
    env = alfworld()
    state, info = env.reset(options={"task_index": PLACE})
    assert len(info["admissible_commands"]) == 9
    plan = env.expert_plan(state)
    assert plan == (
        "go to tvstand 1",
        "take creditcard 4 from tvstand 1",
        "go to armchair 1",
        "move creditcard 4 to armchair 1",
    )
    assert play(env, *plan, task=PLACE)[-1].rewards.total == 1.0


def test_cool(alfworld: Alfworld) -> None:
    env = alfworld()
    results = play(
        env,
        "go to countertop 1",
        "take tomato 1 from countertop 1",
        "go to fridge 1",
        "cool tomato 1 with fridge 1",
        "examine tomato 1",
        "go to microwave 1",
        "move tomato 1 to microwave 1",
        "open microwave 1",
        "move tomato 1 to microwave 1",
        task=COOL,
    )
    said = texts(results)
    assert said[2].endswith("The fridge 1 is closed.")
    assert said[4] == "This is a cold tomato 1."
    assert said[6] == NOTHING
    assert said[7].endswith("In it, you see a mug 1.")
    assert [r.terminated for r in results] == [False] * 8 + [True]
    assert results[-1].rewards.total == 1.0


def test_look(alfworld: Alfworld) -> None:
    results = play(
        alfworld(),
        "go to desk 1",
        "use desklamp 1",
        "go to dresser 1",
        "take creditcard 2 from dresser 1",
        "go to desk 1",
        task=LOOK,
    )
    assert texts(results)[1] == "You turn on the desklamp 1."
    assert [r.terminated for r in results] == [False] * 4 + [True]
    assert [reward(r, "progress") for r in results] == [0, 0.5, -0.5, 0.5, 0.5]


def test_two(alfworld: Alfworld) -> None:
    env = alfworld()
    start = env.reset(options={"task_index": TWO})[0]
    plan = env.expert_plan(start)
    assert plan is not None
    candles = [n for n, command in enumerate(plan) if command.startswith("move candle")]
    results = play(env, *plan, task=TWO)
    assert [reward(results[n], "progress") for n in candles] == [0.5, 0.5]
    assert results[candles[0]].next_state.hidden["truth"]["goal_conditions"] == 0.5
    assert not results[candles[0]].terminated
    assert results[-1].terminated
    commands = [
        "go to toilet 1",
        "take candle 2 from toilet 1",
        "go to countertop 1",
        "move candle 2 to countertop 1",
    ]
    again = [command.replace("candle 2", "candle 1") for command in commands]
    by_hand = play(env, *commands, *again, task=TWO)
    assert [reward(r, "valid_action") for r in by_hand] == [1.0] * 8
    assert [r.terminated for r in by_hand] == [False] * 7 + [True]


def test_heat(alfworld: Alfworld) -> None:
    env = alfworld()
    plan = env.expert_plan(env.reset(options={"task_index": HEAT})[0])
    assert plan == (
        "go to sinkbasin 1",
        "take mug 2 from sinkbasin 1",
        "go to microwave 1",
        "heat mug 2 with microwave 1",
        "go to coffeemachine 1",
        "move mug 2 to coffeemachine 1",
    )
    assert play(env, *plan, task=HEAT)[-1].rewards.total == 1.0


def test_look_at_an_unseen_place(alfworld: Alfworld) -> None:
    env = alfworld("eval_out_of_distribution")
    assert len(env.reset(options={"task_index": LOOK})[1]["admissible_commands"]) == 21
    commands = ["go to garbagecan 1", "take cd 2 from garbagecan 1", "go to desk 1", "use desklamp 1"]
    results = play(env, *commands, task=LOOK)
    assert "a cd 2" in texts(results)[0]
    assert [r.terminated for r in results] == [False, False, False, True]


def test_branching_from_a_kept_state(alfworld: Alfworld) -> None:
    env = alfworld()
    way = [
        "go to fridge 1",
        "cool tomato 1 with fridge 1",
        "examine tomato 1",
        "go to microwave 1",
        "open microwave 1",
    ]
    kept = play(env, "go to countertop 1", "take tomato 1 from countertop 1", task=COOL)[-1].next_state
    once = texts(play(env, *way, "move tomato 1 to microwave 1", start=kept))
    elsewhere = env.step(kept, Action("go to garbagecan 1"))
    assert elsewhere.next_state.observation.prompt.startswith("You arrive at garbagecan 1.")
    again = play(env, *way, "move tomato 1 to microwave 1", start=kept)
    assert texts(again) == once
    assert again[-1].terminated
    at_the_fridge = env.step(kept, Action("go to fridge 1")).next_state
    assert env.expert_plan(at_the_fridge) == (
        "cool tomato 1 with fridge 1",
        "go to microwave 1",
        "open microwave 1",
        "move tomato 1 to microwave 1",
    )


@pytest.mark.parametrize("split", SPLITS)
def test_counts(alfworld: Alfworld, split: str) -> None:
    assert len(alfworld(split)) == 6
    assert len(alfworld(split, task_types=[3])) == 1
    some = alfworld(split, task_types=[1, 3, 6])
    assert [game.task_type for game in some.games] == [
        "pick_and_place_simple", "pick_clean_then_place_in_recep", "pick_two_obj_and_place",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("split", "lengths"),
    [
        ("train", [21, 7, 10, 16, 12, 17]),
        ("eval_in_distribution", [5, 11, 27, 11, 28, 16]),
        ("eval_out_of_distribution", [14, 7, 12, 16, 7, 32]),
    ],
)
def test_walkthroughs_and_expert_plans_win_every_game(alfworld: Alfworld, split: str, lengths: list[int]) -> None:
    env = alfworld(split)
    assert [len(env.walkthrough(task)) for task in range(6)] == lengths
    for task in range(6):
        walked = play(env, *env.walkthrough(task), task=task)
        assert [r.terminated for r in walked] == [False] * (lengths[task] - 1) + [True]
        assert [r.rewards.total for r in walked] == [0.0] * (lengths[task] - 1) + [1.0]
        plan = env.expert_plan(env.reset(options={"task_index": task})[0])
        assert plan is not None
        assert 4 <= len(plan) <= 9
        assert play(env, *plan, task=task)[-1].rewards.total == 1.0


def test_a_game_in_the_old_wording(alfworld: Alfworld, legacy_game: str) -> None:
    env = alfworld(legacy_game)
    state, info = env.reset()
    assert "help" not in info["admissible_commands"]
    plan = env.expert_plan(state)
    assert plan is not None
    assert plan[-1].startswith("put soapbottle ")
    assert " in/on toilet 1" in plan[-1]
    moved = plan[-1].replace("put ", "move ").replace(" in/on ", " to ")
    results = play(env, *plan[:-1], moved, plan[-1])
    assert texts(results)[0].startswith("You arrive at loc ")
    assert texts(results)[-2] == NOTHING
    assert results[-1].rewards.total == 1.0
