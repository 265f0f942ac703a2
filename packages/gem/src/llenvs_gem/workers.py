"""The workers of this process: children that can be killed, for what must not run here."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any

from llenvs.core.errors import SimulatorCrashed, UpstreamFailed
from llenvs.core.simulator import EngineProcess, EngineRefused

START_LIMIT = 180.0
"""Seconds until a worker must be ready (it imports reasoning_gym, sympy and matplotlib)."""
MOST = max(1, min(4, os.cpu_count() or 1))
"""Workers at once; requests beyond that wait."""
LINGER = 10.0
"""Seconds that idle workers outlive their last user, for the next environment of a series."""


class WorkerStopped(Exception):
    """The worker was killed for its time, or died, twice; `str()` is the reason."""


class Workers:
    """Children that answer requests, see `worker_engine`. Safe under threads and after a fork."""

    def __init__(self, most: int = MOST, linger: float = LINGER) -> None:
        self._most, self._linger = most, linger
        self._changed = threading.Condition()
        self._idle: list[EngineProcess] = []
        self._working = 0
        self._users = 0
        self._timer: threading.Timer | None = None

    def acquire(self) -> None:
        """Count one more user."""
        with self._changed:
            self._users += 1
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def release(self) -> None:
        """Count one user less; some seconds after the last the idle workers end."""
        with self._changed:
            self._users -= 1
            if self._users <= 0 and self._timer is None:
                self._timer = threading.Timer(self._linger, self._end_unused)
                self._timer.daemon = True
                self._timer.start()

    def request(
        self, header: Mapping[str, Any], payload: bytes = b"", *, limit: float, doing: str, environment: str
    ) -> tuple[Any, bytes]:
        """The answer of any worker.

        Args:
            header: the request.
            payload: its raw part.
            limit: seconds.
            doing: what is being done, for errors.
            environment: ``gem/id``, for errors.

        Raises:
            WorkerStopped: it took too long, or died twice over it.
            UpstreamFailed: the upstream raised, or no worker could be started.
        """
        died: SimulatorCrashed | None = None
        for _ in range(2):  # once may be chance (a machine short of memory), twice is the request's doing
            worker = self._take(environment)
            try:
                answer = worker.request(header, payload, limit=limit, doing=doing)
            except SimulatorCrashed as crash:
                self._give_back(worker, alive=False)
                if crash.timed_out:
                    raise WorkerStopped(f"it took longer than {limit:g} s") from None
                died = crash
            except EngineRefused as refusal:
                self._give_back(worker, alive=True)
                raise UpstreamFailed(environment, doing, str(refusal)) from None
            except BaseException:
                self._give_back(worker, alive=False)
                raise
            else:
                self._give_back(worker, alive=True)
                return answer
        raise WorkerStopped(str(died)) from None

    def close(self) -> None:
        """End the idle workers; later requests start new ones."""
        with self._changed:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def forget(self) -> None:
        """Leave all workers to the process that started them (called in a forked copy)."""
        self.__init__(self._most, self._linger)  # type: ignore[misc]

    @property
    def pids(self) -> list[int]:
        """Process ids of the idle workers."""
        with self._changed:
            return [worker.pid for worker in self._idle]

    def _take(self, environment: str) -> EngineProcess:
        with self._changed:
            while not self._idle and self._working >= self._most:
                self._changed.wait()
            self._working += 1
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.close()  # it died while idle, which is no request's doing
        try:
            return EngineProcess("llenvs_gem.worker_engine:engine", {}, name=environment, start_limit=START_LIMIT)
        except BaseException as error:
            with self._changed:
                self._working -= 1
                self._changed.notify()
            if isinstance(error, EngineRefused | SimulatorCrashed):
                raise UpstreamFailed(environment, "starting a worker", str(error)) from None
            raise

    def _give_back(self, worker: EngineProcess, *, alive: bool) -> None:
        with self._changed:
            self._working -= 1
            if alive:
                self._idle.append(worker)
            self._changed.notify()
        if not alive:
            worker.close()

    def _end_unused(self) -> None:
        with self._changed:
            self._timer = None
            unused = self._users <= 0
        if unused:
            self.close()


WORKERS = Workers()
"""Those of this process."""

atexit.register(WORKERS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
