"""The threads in which environment code runs, so that it never holds up the event loop.

Work waits in one bounded queue. A thread that is done takes the next piece at once, and threads are woken one
after the other while work is waiting: short steps are done by one warm thread, long ones get a thread each.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from llenvs.container.errors import ServerBusy


class Workers:
    """Up to `threads` daemon threads that do what the loop `start` was called on hands them.

    Args:
        threads: most pieces of work done at once.
        queue: most pieces waiting; more are refused with `ServerBusy`.
    """

    def __init__(self, threads: int, queue: int) -> None:
        self.threads = threads
        self.queue = queue
        self.awake = 0
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._finished: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._lock = threading.Lock()
        self._wanted = threading.Semaphore(0)
        self._idle = 0
        self._started = 0
        self._told = False  # whether the loop was told to look at what is finished
        self._loop: asyncio.AbstractEventLoop | None = None
        self._growing: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Pieces of work that no thread has taken yet."""
        return len(self._waiting)

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Do `work` in a thread. To be called on the event loop, always the same.

        Raises:
            ServerBusy: the queue is full.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if len(self._waiting) >= self.queue:
            raise ServerBusy(f"{self.queue} requests are waiting already; send it again later")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((work, future))
        if self.awake == 0:
            self._wake()
        if self._growing is None:
            self._growing = self._loop.call_later(0.001, self._grow, 1)
        return future

    def _grow(self, count: int) -> None:
        """Wake `count` more threads if work is still waiting, and twice as many a little later."""
        assert self._loop is not None
        self._growing = None
        if self._waiting:
            for _ in range(min(count, len(self._waiting))):
                self._wake()
            self._growing = self._loop.call_later(0.001, self._grow, min(2 * count, self.threads))

    def _wake(self) -> None:
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self.awake += 1
                self._wanted.release()
            elif self._started < self.threads:
                self._started += 1
                self.awake += 1
                threading.Thread(target=self._run, name=f"worker-{self._started}", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._work_off()
            with self._lock:
                self.awake -= 1
                self._idle += 1
                # something may have come between the last look and now, with nobody woken for it
                if self._waiting:
                    self._idle -= 1
                    self.awake += 1
                    continue
            self._wanted.acquire()

    def _work_off(self) -> None:
        while True:
            try:
                work, future = self._waiting.popleft()
            except IndexError:
                return
            if future.cancelled():
                continue
            try:
                self._finish(future, work(), None)
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits for it
                self._finish(future, None, error)

    def _finish(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        assert self._loop is not None
        self._finished.append((future, value, error))
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._told = False
        while self._finished:
            future, value, error = self._finished.popleft()
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)
