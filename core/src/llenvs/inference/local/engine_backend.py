"""Backends with an engine inside this process: started at the first request, stopped with the backend."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from llenvs.inference.backend import Backend
from llenvs.inference.errors import EngineUnavailable

EngineT = TypeVar("EngineT")


class LocalEngineBackend(Backend, Generic[EngineT]):
    """A backend that holds one engine, which all threads and loops of its process share.

    Whoever writes one gives `name`, `capabilities`, `_start_engine`, `_stop_engine` and `_generate`, which awaits
    `_started`. What is still running when the interpreter ends is stopped then.
    """

    fork_problem: ClassVar[str | None] = None
    """Why a process made by fork cannot use a backend of its parent; None: it starts an engine of its own."""

    def __init__(self, model: str, *, max_concurrency: int = 64) -> None:
        super().__init__(model, max_concurrency=max_concurrency)
        self._starting = threading.Lock()
        self._running: EngineT | None = None
        self._pid = os.getpid()
        _backends.add(self)

    @abstractmethod
    def _start_engine(self) -> EngineT:
        """Start it; no loop runs in the calling thread. Raises `EngineUnavailable`, `ModelNotFound`."""

    @abstractmethod
    def _stop_engine(self, engine: EngineT) -> None:
        """Stop it; no loop runs in the calling thread. Requests under way are to fail with `ConnectionFailed`."""

    async def check(self) -> None:
        """Start the engine. Raises what a request would."""
        await self._started()

    async def aclose(self) -> None:
        """Stop the engine; requests under way fail with `ConnectionFailed`. A later request starts it again."""
        await asyncio.to_thread(self._stop)

    async def _started(self) -> EngineT:
        """The engine, started now if need be."""
        if self._running is not None and self._is_ours:
            return self._running
        return await asyncio.to_thread(self._start)

    def _start(self) -> EngineT:
        """`_started` where no loop runs."""
        if not self._is_ours:
            if self.fork_problem is not None:
                raise EngineUnavailable(self.name, self.fork_problem)
            self._starting, self._running, self._pid = threading.Lock(), None, os.getpid()
        with self._starting:
            if self._running is None:
                self._running = self._start_engine()
            return self._running

    def _stop(self) -> None:
        if not self._is_ours:
            return
        with self._starting:
            engine, self._running = self._running, None
        if engine is not None:
            self._stop_engine(engine)

    @property
    def _is_ours(self) -> bool:
        """Whether the engine, if there is one, was started by this process."""
        return self._pid == os.getpid()


_backends: weakref.WeakSet[LocalEngineBackend[Any]] = weakref.WeakSet()


def _stop_all() -> None:
    # an engine must not be at work in threads while the interpreter goes away under them
    for backend in list(_backends):
        backend._stop()


atexit.register(_stop_all)
