"""Playing by commands."""

from __future__ import annotations

import random
from typing import Any

from llenvs import Action, State
from llenvs.core.environment import StepResult
from llenvs_alfworld.environment import AlfworldEnvironment

# sorted by name, the six types of task come in this order in each split
LOOK, PLACE, CLEAN, COOL, HEAT, TWO = range(6)


def play(
    env: AlfworldEnvironment, *commands: str, task: int = 0, start: State[Any] | None = None
) -> list[StepResult]:
    """The results of the commands, from the beginning of a task or from `start`."""
    state = env.reset(options={"task_index": task})[0] if start is None else start
    results = []
    for command in commands:
        results.append(env.step(state, Action(command)))
        state = results[-1].next_state
    return results


def texts(results: list[StepResult]) -> list[str]:
    return [result.next_state.observation.prompt for result in results]


def reward(result: StepResult, name: str) -> float | None:
    return result.rewards[name].reward


def wander(state: State[Any], rng: random.Random) -> Action:
    """Mostly something other than going elsewhere, now and then something that the game does not take."""
    if rng.random() < 0.05:
        return Action("water the plants")
    commands = state.metadata.info["admissible_commands"]
    handling = [c for c in commands if not c.startswith("go to")]
    return Action(rng.choice(handling if rng.random() < 0.6 else commands))
