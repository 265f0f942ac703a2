"""Upstreams that change, one of each kind, and environments over them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import EnvironmentSpec
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import (
    CacheLimits,
    EngineProcess,
    Frame,
    Simulator,
    SimulatorEnvironment,
    Snapshots,
)


class Dungeon:
    """The upstream: a walk over numbers with dice, which keeps everything in itself."""

    def __init__(self, task: int, seed: int) -> None:
        self.dice = random.Random(f"{task}/{seed}")
        self.place, self.moves, self.log = task, 0, ["begin"]

    def do(self, text: str) -> tuple[str, float]:
        self.moves += 1
        self.log.append(text)
        before = self.place
        self.place += self.dice.randrange(1, 7) + len(text)
        return f"{text!r} leads from {before} to {self.place}, {len(self.log)} lines", self.place - before


class Replayed(Simulator):
    """Saves nothing."""

    acted = 0  # over all simulators of the class: how often the upstream really acted

    def start(self, task_index: int, seed: int) -> Frame:
        self.dungeon = Dungeon(task_index, seed)
        return Frame(Observation(f"Dungeon {task_index}."), truth={"place": task_index})

    def act(self, action: Action) -> Frame:
        type(self).acted += 1
        text, gained = self.dungeon.do(action.text)
        signals = (Signal("gained", RewardType.STEP, gained),)
        ended = self.dungeon.moves >= 60
        return Frame(
            Observation(text), signals, terminated=ended, info={"place": self.dungeon.place}, truth=self._truth()
        )

    def _truth(self) -> dict[str, Any]:
        return {"place": self.dungeon.place}


class Local(Replayed):
    """Saves objects."""

    snapshots = Snapshots.LOCAL

    def save(self) -> Any:
        d = self.dungeon
        return (d.dice.getstate(), d.place, d.moves, tuple(d.log))

    def restore(self, snapshot: Any, task_index: int, seed: int) -> None:
        self.dungeon = Dungeon(task_index, seed)
        dice, self.dungeon.place, self.dungeon.moves, log = snapshot
        self.dungeon.dice.setstate(dice)
        self.dungeon.log = list(log)

    def snapshot_size(self, snapshot: Any) -> int:
        return 1000


class Sometimes(Local):
    """Can be saved after an even number of moves alone."""

    def save(self) -> Any:
        return super().save() if self.dungeon.moves % 2 == 0 else None


class Portable(Local):
    """Saves bytes: how far the dice are, and the place."""

    snapshots = Snapshots.PORTABLE

    def save(self) -> bytes:
        return f"{self.dungeon.place} {self.dungeon.moves}".encode()

    def restore(self, snapshot: bytes, task_index: int, seed: int) -> None:
        self.dungeon = Dungeon(task_index, seed)
        place, moves = map(int, snapshot.decode().split())
        for _ in range(moves):
            self.dungeon.do("")
        self.dungeon.place = place


class Talking(Simulator):
    """Every answer holds what somebody outside says, never the same twice; recorded if `records`."""

    said = 0
    records = True

    def start(self, task_index: int, seed: int) -> Frame:
        self.heard: list[str] = []
        return Frame(Observation(self._hear("hello")))

    def act(self, action: Action) -> Frame:
        return Frame(Observation(self._hear(action.text)))

    def _hear(self, text: str) -> str:
        self.heard.append(str(self.outside.ask(self._somebody) if self.records else self._somebody()))
        return f"{text}: {' '.join(self.heard)}"

    @classmethod
    def _somebody(cls) -> int:
        Talking.said += 1
        return Talking.said


class Unrecorded(Talking):
    records = False


def engine(greeting: str) -> Callable[[dict[str, Any], bytes], tuple[Any, bytes]]:
    """What the child of `Crashing` runs: counts, and dies when told to."""
    state = {"count": 0}

    def handle(request: dict[str, Any], payload: bytes) -> tuple[Any, bytes]:
        what = request["do"]
        if what == "set":
            state["count"] = int(payload)
        elif what == "segfault":
            os.write(2, b"about to fall")
            os.kill(os.getpid(), signal.SIGSEGV)
        elif what == "exit":
            os._exit(3)
        elif what == "hang":
            time.sleep(60)
        elif what == "raise":
            raise ValueError("not like this")
        else:
            print("noise on standard output")  # noqa: T201
            state["count"] += 1
        return {"text": f"{greeting} {state['count']}", "in": os.getcwd()}, str(state["count"]).encode()

    return handle


class Crashing(Simulator):
    """Its engine lives in a child process."""

    snapshots = Snapshots.PORTABLE

    def __init__(self) -> None:
        self.engine = EngineProcess(f"{__name__}:engine", {"greeting": "count"}, name="kit/crashing")

    @property
    def alive(self) -> bool:
        return self.engine.alive

    def start(self, task_index: int, seed: int) -> Frame:
        return self._do("set", str(task_index).encode())

    def act(self, action: Action) -> Frame:
        return self._do(action.text)

    def _do(self, what: str, payload: bytes = b"") -> Frame:
        answer, self.saved = self.engine.request({"do": what}, payload, limit=1.0 if what == "hang" else 20.0)
        return Frame(Observation(answer["text"]))

    def save(self) -> bytes:
        return self.saved

    def restore(self, snapshot: bytes, task_index: int, seed: int) -> None:
        self._do("set", snapshot)

    def close(self) -> None:
        self.engine.close()


def environment(
    simulator: type[Simulator], limits: CacheLimits | None = None, max_steps: int | None = 100
) -> SimulatorEnvironment:
    spec = EnvironmentSpec(
        simulator.__name__.lower(),
        "kit",
        max_steps=max_steps,
        is_multi_turn=True,
        deterministic=not issubclass(simulator, Talking),
    )
    return SimulatorEnvironment(
        spec, simulator, num_tasks=5, snapshots=simulator.snapshots, limits=limits or CacheLimits()
    )


def replayed() -> SimulatorEnvironment:
    return environment(Replayed)


def local() -> SimulatorEnvironment:
    return environment(Local)


def portable() -> SimulatorEnvironment:
    return environment(Portable)


def crashing() -> SimulatorEnvironment:
    return environment(Crashing)
