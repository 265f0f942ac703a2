"""The threads in which environment code runs, so that it never holds up the event loop.

Work waits in one bounded queue. A thread that is done takes the next piece at once, and threads are woken one
after the other while work is waiting: short steps are done by one warm thread, long ones get a thread each.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from llenvs.container.errors import RequestTimedOut, ServerBusy
from llenvs.core.errors import LLEnvsError

Done = Callable[[str | None, LLEnvsError | None], None]
"""Called once, on the event loop, with the answer or the error."""

_GROWTH_INTERVAL = 0.001


class Job:
    """A piece of work that was handed in."""

    __slots__ = ("done", "ended", "timer", "work")

    def __init__(self, work: Callable[[], str], done: Done) -> None:
        self.work = work
        self.done = done
        self.ended = False
        self.timer: asyncio.TimerHandle | None = None

    def end(self, answer: str | None, error: LLEnvsError | None) -> None:
        """Hand over the outcome, unless that was done already."""
        if self.ended:
            return
        self.ended = True
        if self.timer is not None:
            self.timer.cancel()
        self.done(answer, error)


class Workers:
    """Up to `threads` daemon threads that do what one event loop hands them.

    Args:
        threads: most pieces of work done at once.
        queue_limit: most pieces waiting; more are refused with `ServerBusy`.
        loop: the event loop.
    """

    def __init__(self, threads: int, queue_limit: int, loop: asyncio.AbstractEventLoop) -> None:
        self.threads = threads
        self.awake = 0
        self._queue_limit = queue_limit
        self._loop = loop
        self._waiting: deque[Job] = deque()
        self._finished: deque[tuple[Job, str | None, LLEnvsError | None]] = deque()
        self._lock = threading.Lock()
        self._idle: list[threading.Lock] = []  # what each sleeping thread waits for; the last one is the warmest
        self._started = 0
        self._loop_told = False
        self._growing: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Pieces of work that no thread has taken yet."""
        return len(self._waiting)

    def submit(self, work: Callable[[], str], done: Done, timeout: float | None = None) -> None:
        """Have a thread do `work`, which raises nothing but `LLEnvsError`. To be called on the event loop.

        After `timeout` seconds, the wait in the queue included, `done` gets `RequestTimedOut`. A thread cannot be
        ended: it goes on with what it does, and what comes of it is dropped.

        Raises:
            ServerBusy: the queue is full.
        """
        if len(self._waiting) >= self._queue_limit:
            raise ServerBusy(f"{self._queue_limit} requests are waiting already; send it again later")
        job = Job(work, done)
        if timeout is not None:
            job.timer = self._loop.call_later(
                timeout, job.end, None, RequestTimedOut(f"it took longer than {timeout:g} s")
            )
        self._waiting.append(job)
        if self.awake == 0:
            self._wake()
        elif self._growing is None:
            self._growing = self._loop.call_later(_GROWTH_INTERVAL, self._grow, 1)

    def _grow(self, count: int) -> None:
        """Wake `count` more threads if work is still waiting, and twice as many a little later."""
        self._growing = None
        if self._waiting:
            for _ in range(min(count, len(self._waiting))):
                self._wake()
            self._growing = self._loop.call_later(_GROWTH_INTERVAL, self._grow, min(2 * count, self.threads))

    def _wake(self) -> None:
        with self._lock:
            if self._idle:
                self.awake += 1
                self._idle.pop().release()
            elif self._started < self.threads:
                self._started += 1
                self.awake += 1
                threading.Thread(target=self._run, name=f"worker-{self._started}", daemon=True).start()

    # -- in the threads -----------------------------------------------------------------------------------

    def _run(self) -> None:
        bell = threading.Lock()
        bell.acquire()
        while True:
            self._work_off()
            with self._lock:
                # something may have come between the last look and now, with nobody woken for it
                if self._waiting:
                    continue
                self.awake -= 1
                self._idle.append(bell)
            bell.acquire()

    def _work_off(self) -> None:
        while True:
            try:
                job = self._waiting.popleft()
            except IndexError:
                return
            if job.ended:
                continue
            try:
                self._finished.append((job, job.work(), None))
            except LLEnvsError as error:
                self._finished.append((job, None, error))
            if not self._loop_told:
                self._loop_told = True
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._loop_told = False
        while self._finished:
            job, answer, error = self._finished.popleft()
            job.end(answer, error)
