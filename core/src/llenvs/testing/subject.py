"""The environment under test: made once, walked once, and looked at by all checks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any

from llenvs.core.action import Action
from llenvs.core.encoding import dumps
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import EncodingFailed
from llenvs.core.registry import ENTRY_POINT_GROUP
from llenvs.core.state import State
from llenvs.testing.capture import Captured, captured_output

Factory = Callable[[], Environment[Any]]
Policy = Callable[[State[Any], random.Random], "Action | str"]
Secrets = Callable[[State[Any]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded step, with the JSON of its inputs before it was taken (None: they have none)."""

    state: State[Any]
    action: Action
    result: StepResult
    state_before: str | None
    action_before: str | None


@dataclass(frozen=True, slots=True)
class Walk:
    """One episode as far as it was played: from task `task_index` with `seed`."""

    task_index: int
    seed: int
    initial: State[Any]
    steps: tuple[Step, ...]

    @property
    def states(self) -> tuple[State[Any], ...]:
        """All states in order, the initial one first."""
        return (self.initial, *(s.result.next_state for s in self.steps))


@dataclass(frozen=True)
class Subject:
    """An environment under test.

    Attributes:
        factory: makes a fresh environment.
        address: ``adapter/name`` when the factory is `llenvs.make` on it, with `options`; else None.
        policy: gives the actions of the walks.
        secrets: texts that must not be in the observation of a non-terminal state; None for the automatic rule.
        tasks: how many tasks are walked, spread over all of them.
        seeds: seeds that are tried; the first is used for the walks.
        max_steps: a walk ends after so many steps.
        second_process: whether a second process may be started.
        importable: where a second process finds the factory, as ``module:name``; None if nowhere.
    """

    factory: Factory
    policy: Policy
    address: str | None = None
    options: Mapping[str, Any] | None = None
    secrets: Secrets | None = None
    tasks: int = 3
    seeds: tuple[int, ...] = (0, 1)
    max_steps: int = 8
    second_process: bool = True
    importable: str | None = None

    @cached_property
    def output(self) -> Captured:
        """What the environment wrote to standard output while it was made and walked."""
        return Captured()

    @cached_property
    def environment(self) -> Environment[Any]:
        """The environment that most checks use."""
        with captured_output(self.output):
            return self.factory()

    @cached_property
    def task_indices(self) -> tuple[int, ...]:
        """Up to `tasks` indices from the first to the last."""
        size = len(self.environment)
        count = min(self.tasks, size)
        return tuple(dict.fromkeys(round(i * (size - 1) / max(1, count - 1)) for i in range(count)))

    @cached_property
    def walks(self) -> tuple[Walk, ...]:
        """One episode for each of `task_indices`."""
        with captured_output(self.output):
            return tuple(self._walk(index) for index in self.task_indices)

    @property
    def is_reachable(self) -> bool:
        """Whether another process can make this environment; an adapter registered by hand is here alone."""
        if self.address is None:
            return self.importable is not None
        adapter = self.address.partition("/")[0].replace("-", "_")
        return any(point.name.replace("-", "_") == adapter for point in entry_points(group=ENTRY_POINT_GROUP))

    @property
    def steps(self) -> list[Step]:
        """The steps of all walks."""
        return [step for walk in self.walks for step in walk.steps]

    def start(self, env: Environment[Any], task_index: int, seed: int | None = None) -> State[Any]:
        """The first state of a task."""
        seed = self.seeds[0] if seed is None else seed
        return env.reset(seed=seed, options={"task_index": task_index})[0]

    def act(self, state: State[Any], rng: random.Random) -> Action:
        """What the policy does in `state`."""
        action = self.policy(state, rng)
        return Action(action) if isinstance(action, str) else action

    def _walk(self, task_index: int) -> Walk:
        rng = random.Random(task_index)
        initial = state = self.start(self.environment, task_index)
        steps: list[Step] = []
        while not state.is_terminal and len(steps) < self.max_steps:
            action = self.act(state, rng)
            before = text_of(state), text_of(action)
            result = self.environment.step(state, action)
            steps.append(Step(state, action, result, *before))
            state = result.next_state
        return Walk(task_index, self.seeds[0], initial, tuple(steps))


def text_of(value: Any) -> str | None:
    """The JSON text of `value`, or None when it has none."""
    try:
        return dumps(value)
    except EncodingFailed:
        return None
