"""Environments to score with, importable by name so that worker processes can make them too."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llenvs import Action, Environment, EnvironmentSpec, Observation, RewardType, Signal, State
from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Advance, Start
from llenvs.core.extraction import make_extractor
from llenvs.core.options import EnvironmentOptions
from llenvs.core.single_turn import SingleTurnEnvironment


class ArithmeticOptions(EnvironmentOptions):
    """Options of the adapter `arithmetic`; `says` is added to each observation of `climb`."""

    size: int = 20
    by: int = 2
    slow: float = 0.0
    fails: tuple[int, ...] = ()
    unscored: tuple[int, ...] = ()
    says: str = ""


class Times(SingleTurnEnvironment[Any]):
    """Task i: ``i`` times `by`. Tasks in `fails` raise, of those in `unscored` the scorer fails."""

    def __init__(self, options: ArithmeticOptions) -> None:
        spec = EnvironmentSpec("times", "arithmetic", success_signal="right")
        super().__init__(spec, make_extractor("tag_based"))
        self.options = options
        self.resets = 0
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    @property
    def num_tasks(self) -> int:
        return self.options.size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        self.resets += 1
        by = self.options.by
        return Start(
            Observation(f"What is {task_index} times {by}?"), {"answer": task_index * by, "i": task_index}
        )

    def _score(self, hidden: Any, answer: str | None) -> Iterable[Signal]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.options.slow:
                time.sleep(self.options.slow)
            if hidden["i"] in self.options.fails:
                raise OSError("the sandbox is gone")
        finally:
            with self._lock:
                self.at_once -= 1
        if hidden["i"] in self.options.unscored:
            yield Signal("right", metadata={"error": "the judge is silent"})
        else:
            yield Signal("right", reward=answer == str(hidden["answer"]), feedback="" if answer else "no answer")
        yield Signal("length", RewardType.FORMAT, len(answer or ""), weight=0)


class Climb(Environment[Any]):
    """Several turns: from 0 to the goal by "up" and "down"; a point for each step nearer."""

    def __init__(self, options: ArithmeticOptions) -> None:
        super().__init__(
            EnvironmentSpec("climb", "arithmetic", max_steps=6, is_multi_turn=True, success_signal="reached")
        )
        self._says = options.says

    @property
    def num_tasks(self) -> int:
        return 3

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(f"Climb to {task_index + 2}. You are at 0."), {"at": 0, "target": task_index + 2})

    def _advance(self, state: State[Any], action: Action) -> Advance:
        move = {"up": 1, "down": -1}.get(action.text.strip(), 0)
        at = state.hidden["at"] + move
        hidden = {**state.hidden, "at": at}
        return Advance(
            Observation(f"You are at {at}.{self._says}"),
            hidden,
            at == hidden["target"],
            resolved_action=Action(str(move)),
        )

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> Iterable[Signal]:
        before, after = state.hidden["at"], next_state.hidden["at"]
        yield Signal("nearer", RewardType.STEP, after - before)
        yield Signal("reached", reward=after == state.hidden["target"])


class ArithmeticAdapter(Adapter):
    """The two above."""

    name = "arithmetic"
    options = ArithmeticOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [
            EnvironmentInfo("times", self.name, "multiply", "test"),
            EnvironmentInfo("climb", self.name, "climb", "test", is_multi_turn=True),
        ]

    def create(self, name: str, options: Any) -> Environment[Any]:
        return {"times": Times, "climb": Climb}[name](options)


def answers(count: int, seed: int = 0) -> list[str]:
    """Right and wrong answers to the tasks of `times` by 2, some without a tag."""
    rng = random.Random(seed)
    return [rng.choice([f"<answer>{2 * i}</answer>", "<answer>x</answer>", "I give up"]) for i in range(count)]
