"""A tool environment: find a number by guessing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llenvs import Action, Environment, EnvironmentSpec, Signal, State
from llenvs.core import ToolEnvironment
from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.options import EnvironmentOptions
from llenvs.core.tool_environment import TaskStart, Turn
from llenvs.core.tools import Tool, ToolResult

TARGETS = (7, 3, 9)


def guess(hidden: Any, number: int) -> tuple[str, Any]:
    """Guess the number.

    Args:
        number: The guess.
    """
    hidden["guesses"].append(number)
    target = hidden["target"]
    return "higher" if number < target else "lower" if number > target else "correct", hidden


class GuessOptions(EnvironmentOptions):
    """Options: the tasks whose steps fail."""

    fails: tuple[int, ...] = ()


class Guess(ToolEnvironment[Any]):
    """Ends with the right guess."""

    def __init__(self, options: GuessOptions) -> None:
        spec = EnvironmentSpec("number", "guess", max_steps=5, is_multi_turn=True, success_signal="found")
        super().__init__(spec, [Tool.from_callable(guess, stateful=True)])
        self.fails = options.fails
        self.steps = 0

    @property
    def num_tasks(self) -> int:
        return len(TARGETS)

    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        return TaskStart("Find my number.", {"target": TARGETS[task_index], "guesses": [], "i": task_index})

    def _react(self, action: Action, results: tuple[ToolResult, ...], turn: Turn) -> Turn:
        self.steps += 1
        if turn.hidden["i"] in self.fails:
            raise OSError("the secret 7 is lost")
        return replace(turn, terminated=turn.hidden["target"] in turn.hidden["guesses"])

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> Iterable[Signal]:
        yield Signal("found", reward=next_state.hidden["target"] in next_state.hidden["guesses"])


class GuessAdapter(Adapter):
    """The one above."""

    name = "guess"
    options = GuessOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [EnvironmentInfo("number", self.name, "guess", "test", is_multi_turn=True)]

    def create(self, name: str, options: Any) -> Environment[Any]:
        return Guess(options)
