"""Environments that fail on demand: the model's words say how."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from llenvs import Action, Environment, EnvironmentSpec, Observation, RewardType, Signal, State
from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Advance, Start
from llenvs.core.options import EnvironmentOptions

WAYS = ("raise", "exit", "hang", "die")
"""An exception; SystemExit, as upstreams raise it; no answer; the process is killed."""


class Fails(Environment[Any]):
    """Task i asks for i; one turn, or up to three. Each word of `WAYS` in an action fails in its way."""

    def __init__(self, turns: int) -> None:
        super().__init__(
            EnvironmentSpec(
                "often" if turns > 1 else "once",
                "failing",
                max_steps=turns,
                is_multi_turn=turns > 1,
                success_signal="right",
            )
        )
        self._turns = turns

    @property
    def num_tasks(self) -> int:
        return 4

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(f"Say {task_index}."), {"wanted": str(task_index)})

    def _advance(self, state: State[Any], action: Action) -> Advance:
        if "raise" in action.text:
            raise OSError("the sandbox is gone")
        if "exit" in action.text:
            raise SystemExit(3)
        if "hang" in action.text:
            threading.Event().wait(60)
        if "die" in action.text:
            os.kill(os.getpid(), signal.SIGKILL)
        right = action.text.strip() == state.hidden["wanted"]
        return Advance(Observation("No."), state.hidden, right or self._turns == 1)

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> Iterable[Signal]:
        yield Signal("right", RewardType.OUTCOME, float(action.text.strip() == state.hidden["wanted"]))


class FailingAdapter(Adapter):
    """The two of them."""

    name = "failing"
    options = EnvironmentOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [
            EnvironmentInfo("once", self.name, "one turn", "test"),
            EnvironmentInfo("often", self.name, "several turns", "test", is_multi_turn=True),
        ]

    def create(self, name: str, options: Any) -> Environment[Any]:
        return Fails({"once": 1, "often": 3}[name])


ADAPTER = FailingAdapter()


def installed(folder: Path) -> str:
    """A PYTHONPATH on which other processes find the adapter by its entry point."""
    info = folder / "failing-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[llenvs.adapters]\nfailing = failing:ADAPTER\n")
    return os.pathsep.join([str(folder), str(Path(__file__).parent)])
