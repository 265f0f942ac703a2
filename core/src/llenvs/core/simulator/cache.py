"""Live simulators and snapshots, bounded: a cache over recipes, never the truth."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.simulator.simulator import Simulator, Snapshots


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Bounds of what an environment keeps besides its states.

    Attributes:
        live: simulators, idle and at work (each may be a process). A step that finds all at work waits for one.
        snapshots: number of local snapshots.
        snapshot_bytes: bytes of local snapshots, all together.
        snapshot_every: a local snapshot is taken after every so many actions.
    """

    live: int = 4
    snapshots: int = 4096
    snapshot_bytes: int = 64 << 20
    snapshot_every: int = 1

    def __post_init__(self) -> None:
        for name, least in (("live", 1), ("snapshots", 0), ("snapshot_bytes", 0), ("snapshot_every", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidOption(name, value, f"must be an integer of at least {least}")


@dataclass(frozen=True, slots=True)
class SimulatorStats:
    """What the cache holds and what happened so far.

    Attributes:
        live, snapshots, snapshot_bytes: idle simulators and local snapshots held now, and the bytes of the latter.
        at_work: simulators that are stepping now.
        created: simulators made.
        continued: steps whose simulator was already there.
        restored: snapshots restored (portable ones included).
        replayed: actions taken again to get to an older state.
        evicted_live, evicted_snapshots: thrown out for the bounds.
        crashed: engines that died at work.
    """

    live: int = 0
    at_work: int = 0
    snapshots: int = 0
    snapshot_bytes: int = 0
    created: int = 0
    continued: int = 0
    restored: int = 0
    replayed: int = 0
    evicted_live: int = 0
    evicted_snapshots: int = 0
    crashed: int = 0


@dataclass(slots=True)
class _Idle:
    key: bytes
    task_index: int
    simulator: Simulator


@dataclass(slots=True)
class Found:
    """The nearest point from which a state can be reached: `turns` of its recipe are behind it.

    Either a `simulator` that stands there, or a `snapshot` (`has_snapshot`) to restore; with 0 turns neither.
    """

    turns: int
    simulator: Simulator | None = None
    snapshot: Any = None
    has_snapshot: bool = False


class SimulatorCache:
    """Idle simulators by the state they stand in, and local snapshots by theirs. Safe under threads and forks.

    A simulator that was taken belongs to the taker alone until it is given back with `put` or `discard`.
    """

    def __init__(self, make: Callable[[], Simulator], limits: CacheLimits) -> None:
        self.limits = limits
        self._make = make
        self._lock = threading.Condition()
        self._closed = False
        self._process = os.getpid()
        self._counts = dict.fromkeys(
            ("created", "continued", "restored", "replayed", "evicted_live", "evicted_snapshots", "crashed"), 0
        )
        self._clear()

    def _clear(self) -> None:
        self._at_work = 0
        self._idle: OrderedDict[int, _Idle] = OrderedDict()  # by id of the simulator, least recently used first
        self._at: dict[bytes, list[int]] = {}
        self._snapshots: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        self._snapshot_bytes = 0

    # -- taking -------------------------------------------------------------------------------------------

    def take(self, key: bytes) -> Simulator | None:
        """The simulator that stands in the state `key`, if there is one."""
        with self._lock:
            self._check_process()
            simulator = self._pop_at(key)
            if simulator is not None:
                self._counts["continued"] += 1
            return simulator

    def nearest(self, keys: Iterable[tuple[int, bytes]]) -> Found:
        """The first of `keys` that a simulator stands in or a snapshot is kept of."""
        with self._lock:
            self._check_process()
            for turns, key in keys:
                simulator = self._pop_at(key)
                if simulator is not None:
                    return Found(turns, simulator)
                kept = self._snapshots.get(key)
                if kept is not None:
                    self._snapshots.move_to_end(key)
                    return Found(turns, snapshot=kept[0], has_snapshot=True)
        return Found(0)

    def any(self, task_index: int, snapshots: Snapshots) -> Simulator:
        """A simulator that may stand anywhere: an idle one, a new one, or the first that is given back.

        Where simulators can restore snapshots an idle one of the same task is best, since it can go anywhere at
        once. Where they cannot, each idle one saves a replay to somebody, so the bound is filled first.
        """
        with self._lock:
            self._check_process()
            while True:
                here = [n for n, idle in self._idle.items() if idle.task_index == task_index]
                if here and snapshots is not Snapshots.NONE:
                    return self._pop(here[0])
                if len(self._idle) + self._at_work < self.limits.live:
                    self._counts["created"] += 1
                    self._at_work += 1
                    break
                if self._idle:
                    self._counts["evicted_live"] += 1
                    return self._pop(next(iter(self._idle)))
                self._lock.wait()
        try:
            return self._make()
        except BaseException:
            self._left()
            raise

    # -- giving back --------------------------------------------------------------------------------------

    def put(self, simulator: Simulator, key: bytes, task_index: int) -> None:
        """Give back a simulator that stands in the state `key`."""
        with self._lock:
            keeps = not self._closed
            if keeps:
                self._idle[id(simulator)] = _Idle(key, task_index, simulator)
                self._at.setdefault(key, []).append(id(simulator))
            self._left()
        if not keeps:
            simulator.close()

    def discard(self, simulator: Simulator) -> None:
        """Give back a simulator that nobody may use again."""
        self._left()
        simulator.close()

    def discard_dead(self) -> None:
        """Throw away the idle simulators whose engines have died."""
        with self._lock:
            dead = [number for number, idle in self._idle.items() if not idle.simulator.alive]
            simulators = [self._pop(number) for number in dead]
        for simulator in simulators:
            self.discard(simulator)

    def keep(self, key: bytes, snapshot: Any, size: int) -> None:
        """Keep a local snapshot of the state `key`."""
        with self._lock:
            if self._closed:
                return
            self._drop_snapshot(key)
            self._snapshots[key] = snapshot, size
            self._snapshot_bytes += size
            while (
                len(self._snapshots) > self.limits.snapshots or self._snapshot_bytes > self.limits.snapshot_bytes
            ):
                self._drop_snapshot(next(iter(self._snapshots)))
                self._counts["evicted_snapshots"] += 1

    def count(self, what: str, by: int = 1) -> None:
        """Add to a counter of `SimulatorStats`."""
        with self._lock:
            self._counts[what] += by

    @property
    def stats(self) -> SimulatorStats:
        """What is held and what happened."""
        with self._lock:
            return SimulatorStats(
                live=len(self._idle),
                at_work=self._at_work,
                snapshots=len(self._snapshots),
                snapshot_bytes=self._snapshot_bytes,
                **self._counts,
            )

    def close(self) -> None:
        """Close what is idle now, and what is at work when it is given back."""
        with self._lock:
            self._check_process()
            self._closed = True
            idle = list(self._idle.values())
            at_work = self._at_work
            self._clear()
            self._at_work = at_work
        for each in idle:
            each.simulator.close()

    def _left(self) -> None:
        """One simulator less is at work."""
        with self._lock:  # may be held already
            self._at_work -= 1
            self._lock.notify()

    # -- under the lock -----------------------------------------------------------------------------------

    def _pop_at(self, key: bytes) -> Simulator | None:
        numbers = self._at.get(key)
        return self._pop(numbers[-1]) if numbers else None

    def _pop(self, number: int) -> Simulator:
        idle = self._idle.pop(number)
        numbers = self._at[idle.key]
        numbers.remove(number)
        if not numbers:
            del self._at[idle.key]
        self._at_work += 1
        return idle.simulator

    def _drop_snapshot(self, key: bytes) -> None:
        _, size = self._snapshots.pop(key, (None, 0))
        self._snapshot_bytes -= size

    def _check_process(self) -> None:
        """In a forked copy: leave all simulators (pipes, files) to the process that made them."""
        if os.getpid() != self._process:
            self._process = os.getpid()
            self._clear()
