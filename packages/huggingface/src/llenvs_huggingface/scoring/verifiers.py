"""Worker processes that run math-verify, shared by all environments.

A worker is asked one question at a time; it answers in a fork of itself, which is killed at the limit. There
are as many as are needed at once, up to `MAX_WORKERS`; they start when first needed and end with the last
environment that uses them.
"""

from __future__ import annotations

import os
import threading

from llenvs.core.errors import SimulatorCrashed, UpstreamFailed
from llenvs.core.simulator.engine_process import EngineProcess, EngineRefused

MAX_WORKERS = min(4, os.cpu_count() or 1)
"""Workers at most; each takes some 80 MB."""
START_LIMIT = 180.0
"""Seconds until a worker must be ready (it imports sympy)."""
WORKER_GRACE = 30.0
"""Seconds beyond a comparison's limit after which the worker itself must be stuck."""
_NAME = "huggingface/math"


class Verifiers:
    """A pool of workers. Safe under threads and after a fork."""

    def __init__(self, limit: int = MAX_WORKERS) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._idle: list[EngineProcess] = []
        self._count = 0
        self._users = 0

    def acquire(self) -> None:
        """Count one more user."""
        with self._changed:
            self._users += 1

    def release(self) -> None:
        """Count one user less; with the last the idle workers end."""
        with self._changed:
            self._users -= 1
            last = self._users <= 0
        if last:
            self._drop_idle()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that wait for a question."""
        with self._changed:
            return [worker.pid for worker in self._idle]

    def verdict(self, expected: str, answer: str, seconds: float) -> str:
        """How math-verify compares the two: "equal", "different", "timeout", "died" or "error: ...".

        Args:
            expected: LaTeX without delimiters.
            answer: the same.
            seconds: for the comparison; starting a worker and waiting for one do not count.

        Raises:
            UpstreamFailed: no worker could be started, or it died (not of the answer: a fork of it compares).
        """
        request = {"expected": expected, "answer": answer, "seconds": seconds}
        for attempt in (1, 2):
            worker = self._take()
            try:
                verdict, _ = worker.request(request, limit=seconds + WORKER_GRACE, doing="comparing")
            except SimulatorCrashed:
                self._drop(worker)
                if attempt == 2:
                    raise
                self._drop_idle()  # what ended this one may have ended them too
            except BaseException as error:
                self._drop(worker)
                if isinstance(error, EngineRefused):
                    raise UpstreamFailed(_NAME, "comparing", str(error)) from None
                raise
            else:
                self._give_back(worker)
                return str(verdict)
        raise AssertionError("unreachable")

    def _take(self) -> EngineProcess:
        with self._changed:
            while not self._idle and self._count >= self._limit:
                self._changed.wait()
            if self._idle:
                return self._idle.pop()
            self._count += 1
        try:
            return EngineProcess(
                "llenvs_huggingface.scoring.math_process:verifier", {}, name=_NAME, start_limit=START_LIMIT
            )
        except BaseException as error:
            self._drop(None)
            if isinstance(error, EngineRefused):
                raise UpstreamFailed(_NAME, "starting math-verify", str(error)) from None
            raise

    def _give_back(self, worker: EngineProcess) -> None:
        with self._changed:
            keep = self._users > 0
            if keep:
                self._idle.append(worker)
            else:
                self._count -= 1
            self._changed.notify()
        if not keep:
            worker.close()

    def _drop_idle(self) -> None:
        with self._changed:
            ending, self._idle = self._idle, []
        for worker in ending:
            self._drop(worker)

    def _drop(self, worker: EngineProcess | None) -> None:
        if worker is not None:
            worker.close()
        with self._changed:
            self._count -= 1
            self._changed.notify()

    def forget(self) -> None:
        """Leave the workers to the process that started them (called in a forked copy)."""
        users = self._users
        self.__init__(self._limit)  # type: ignore[misc]
        self._users = users


VERIFIERS = Verifiers()
"""The workers of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=VERIFIERS.forget)
