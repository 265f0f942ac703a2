"""Playing by moves, and moves that fit each game."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from llenvs import Action, Environment, State, StepResult

WORDS = (
    "cat",
    "car",
    "dog",
    "man",
    "sun",
    "apple",
    "table",
    "house",
    "water",
    "picture",
    "teacher",
    "a",
    "e",
    "s",
)


def boxed(move: str) -> str:
    return f"\\boxed{{{move}}}"


def play(env: Environment[Any], *moves: str, task_index: int = 0) -> list[StepResult]:
    """The results of `moves`, put into boxes unless they are empty."""
    state, _ = env.reset(options={"task_index": task_index})
    results = []
    for move in moves:
        results.append(env.step(state, Action(boxed(move) if move else "I do not know.")))
        state = results[-1].next_state
    return results


def rewards(results: Sequence[StepResult]) -> list[float]:
    """The upstream's rewards, to four places."""
    return [round(result.rewards["reward"].reward or 0.0, 4) for result in results]


def prompt(result: StepResult) -> str:
    return result.next_state.observation.prompt


def board(result: StepResult) -> str:
    text: str = result.next_state.metadata.info["suffix"]
    return text


def random_move(id: str, rng: random.Random, nonsense: float = 0.02) -> str:
    """A move of the form that the game `id` takes, often a legal one, now and then nonsense."""
    if rng.random() < nonsense:
        return rng.choice(["no box", boxed("xyzzy"), boxed("1" * 5000), boxed(""), "\\boxed{"])
    numbers = [str(rng.randrange(10)) for _ in range(4)]
    match id.partition(":")[2].partition("-")[0]:
        case "GuessTheNumber":
            move = str(rng.randrange(61))
        case "Mastermind":
            move = " ".join(str(rng.randrange(1, 9)) for _ in range(rng.choice((2, 4))))
        case "Minesweeper":
            move = f"{rng.choice(['reveal', 'reveal', 'flag'])} {rng.randrange(9)} {rng.randrange(9)}"
        case "Wordle" | "Hangman":
            move = rng.choice(WORDS)
        case "Sudoku":
            move = " ".join(str(rng.randrange(1, 10)) for _ in range(3))
        case "TowerofHanoi":
            move = f"{rng.choice('ABC')} {rng.choice('ABC')}"
        case "Crosswords":
            move = f"{numbers[0]} {numbers[1]} {rng.choice('ETAOINSRHL')}"
        case "WordSearch":
            move = f"{numbers[0]} {numbers[1]} {numbers[0]} {numbers[2]}"
        case _:
            move = rng.choice(["up", "down", "left", "right"])
    return f"Let us see: {boxed(move)}"


def random_policy(id: str) -> Any:
    """For the conformance kit."""

    def policy(state: State[Any], rng: random.Random) -> Action:
        return Action(random_move(id, rng))

    return policy
