"""Long walks that branch: a pure environment passes, one that remembers does not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from llenvs import Action, Environment, EnvironmentSpec, Observation, State
from llenvs.core.environment import Advance, Start
from llenvs.testing import ConformanceFailed, check_walk


class Sum(Environment[Any]):
    """Adds the lengths of what is said, in the state."""

    def __init__(self) -> None:
        super().__init__(EnvironmentSpec("sum", "kit", max_steps=20, is_multi_turn=True))

    @property
    def num_tasks(self) -> int:
        return 3

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation("0"), {"sum": task_index})

    def _advance(self, state: State[Any], action: Action) -> Advance:
        total = self._total(state) + len(action.text)
        return Advance(Observation(str(total)), {"sum": total})

    def _total(self, state: State[Any]) -> int:
        return int(state.hidden["sum"])

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> tuple[()]:
        return ()


class RememberedSum(Sum):
    """The same in the object: right as long as it is only stepped forward."""

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        self.sum = task_index
        return super()._start(task_index, seed, options)

    def _total(self, state: State[Any]) -> int:
        return self.sum

    def _advance(self, state: State[Any], action: Action) -> Advance:
        advance = super()._advance(state, action)
        self.sum = advance.hidden["sum"]
        return advance


def _policy(state: State[Any], rng: random.Random) -> str:
    return "x" * rng.randrange(1, 9)


def test_a_pure_environment_passes_and_episodes_follow_each_other() -> None:
    seen = []

    def policy(state: State[Any], rng: random.Random) -> str:
        seen.append(state.metadata.step)
        return _policy(state, rng)

    check_walk(Sum(), policy)
    assert seen == [*range(20), *range(20), *range(10)]


def test_an_environment_that_remembers_fails() -> None:
    with pytest.raises(ConformanceFailed, match="then"):
        check_walk(RememberedSum(), _policy)


def test_another_environment_steps_the_states() -> None:
    check_walk(RememberedSum(), _policy, through=Sum())
    with pytest.raises(ConformanceFailed):
        check_walk(Sum(), _policy, through=RememberedSumFrom7())


class RememberedSumFrom7(RememberedSum):
    sum = 7
