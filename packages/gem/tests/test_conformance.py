"""The promises of the contract: the kit, long walks from threads, in a second process, behind a server."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from gem_play import boxed, random_policy

import llenvs
from llenvs import Action, Environment, State
from llenvs.testing import check_environment
from llenvs.testing.walks import check_walk, check_walk_in_second_process

Env = Callable[..., Environment[Any]]
ROWS = [{"problem": f"What is {i} and {i}?", "answer": str(2 * i)} for i in range(1, 31)]
QUESTIONS = [{"problem": f"Who is number {i}?", "answer": [f"Ann {i}", f"Bo {i}"]} for i in range(1, 31)]
TESTS = [
    {"problem": f"Add {i}.", "tests": {"inputs": ["3"], "outputs": [str(3 + i)]}} for i in range(1, 31)
]  # fmt: skip


def test_a_game() -> None:
    id = "game:Minesweeper-v0-hard"
    report = check_environment(f"gem/{id}", actions=random_policy(id), options={"max_live": 2})
    assert not {"second_process", "threads", "odd_actions"} & set(report.skipped), str(report)


@pytest.mark.parametrize("id", ["game:Game2048-v0-random", "game:Sokoban-v0-easy", "game:TowerofHanoi-v0-hard"])
def test_more_games(id: str) -> None:
    check_environment(f"gem/{id}", actions=random_policy(id), second_process=False)


def test_games_of_words(words: str) -> None:
    id = "game:WordSearch-v0-easy"
    options = {"nltk_data": words, "prompt": "full", "invalid_action": "continue"}
    check_environment(f"gem/{id}", actions=random_policy(id), options=options, second_process=False)


def _answers(state: State[Any], rng: random.Random) -> Action:
    right = {"text": "Ann 1", "number": "4"}
    return Action(rng.choice([boxed(right["number"]), f"<answer>{right['text']}</answer>", "I do not know.", ""]))


def test_questions() -> None:
    check_environment("gem/math:GSM8K", options={"dataset": ROWS}, actions=_answers, second_process=False)
    few = {"actions": _answers, "tasks": 1, "second_process": False}
    check_environment("gem/qa:HotpotQA", options={"dataset": QUESTIONS}, **few)
    check_environment("gem/rg:leg_counting", options={"size": 20}, **few)


def _programs(state: State[Any], rng: random.Random) -> Action:
    return Action(f"```python\nprint(int(input()) + {rng.randrange(1, 4)})\n```")


def test_code() -> None:
    check_environment(
        "gem/code:Taco8k",
        options={"dataset": TESTS, "time_limit": 60},
        actions=_programs,
        tasks=1,
        second_process=False,
    )


def test_tools() -> None:
    check_environment(
        "gem/math:GSM8K",
        options={"dataset": ROWS, "tool_types": ["python"], "python_time_limit": 60, "max_tool_uses": 2},
        tasks=1,
        max_steps=3,
        second_process=False,
    )


def test_a_game_with_tools() -> None:
    def policy(state: State[Any], rng: random.Random) -> Action:
        code = f"print({rng.randrange(5)})"
        if rng.random() < 0.3:
            return Action.from_tool_call("python", {"code": code})
        return Action.from_tool_call("submit_answer", {"answer": rng.choice(["up", "down", "left", "right"])})

    options = {"tool_types": ["python"], "python_time_limit": 60, "max_tool_uses": 2}
    check_environment(
        "gem/game:Game2048-v0-easy", options=options, actions=policy, tasks=1, max_steps=4, second_process=False
    )


@pytest.mark.parametrize("id", ["game:Game2048-v0-hard", "game:Minesweeper-v0-random", "game:Sudoku-v0-easy"])
def test_walks(env: Env, id: str) -> None:
    check_walk(env(id), random_policy(id))


def test_a_walk_in_a_second_process() -> None:
    id = "game:Game2048-v0-extreme-hard"
    check_walk_in_second_process(f"gem/{id}", {"size": 5}, random_policy(id))


def test_a_walk_through_the_process_runtime(env: Env) -> None:
    pytest.importorskip("llenvs_container")
    id = "game:Minesweeper-v0-hard"
    with llenvs.make(f"gem/{id}", container="process") as there:
        check_walk(env(id), random_policy(id), through=there)
