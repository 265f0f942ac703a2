"""One persistent event loop in a thread, for callers without a loop of their own.

Clients of HTTP libraries belong to the loop that first used them; giving every sync call its own loop breaks
them. So all sync calls of a process share this one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def shared_loop() -> asyncio.AbstractEventLoop:
    """The loop, started at first use in a daemon thread (and anew after a fork)."""
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_run_forever, args=(loop,), name="llenvs-loop", daemon=True)
            _thread.start()
            _loop = loop
        return _loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
            return
        except (SystemExit, KeyboardInterrupt):
            # asyncio ends the loop on these; the task that raised one gives it to its caller, and others wait here
            continue


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end from synchronous code; also inside a running loop (a notebook).

    KeyboardInterrupt cancels the coroutine and waits for its clean-up.
    """
    loop = shared_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise RuntimeError("a sync call from inside the shared loop would wait for itself; use the async form")
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
    started: list[asyncio.Task[T]] = []

    def start() -> None:
        task = loop.create_task(coroutine)
        task.add_done_callback(lambda task: _hand_over(task, outcome))
        started.append(task)

    def cancel() -> None:
        for task in started:
            task.cancel()

    loop.call_soon_threadsafe(start)
    try:
        return outcome.result()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(cancel)
        concurrent.futures.wait([outcome], timeout=30)
        raise


def _hand_over(task: asyncio.Task[T], outcome: concurrent.futures.Future[T]) -> None:
    if task.cancelled():
        outcome.set_exception(concurrent.futures.CancelledError())
        return
    error = task.exception()
    if error is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(task.result())


class PerLoop(Generic[T]):
    """One value for each event loop that asks for it, made by `make` at first use.

    For what belongs to a loop: HTTP clients, semaphores. A value lives as long as its loop; a process made by
    fork starts without any.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._values: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, T] = weakref.WeakKeyDictionary()

    def get(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._pid != os.getpid():
                self._values.clear()
                self._pid = os.getpid()
            if loop not in self._values:
                for other in [each for each in self._values if each.is_closed()]:
                    del self._values[other]  # a client may hold its loop, which then would never be collected
                self._values[loop] = self._make()
            return self._values[loop]

    async def aclose(self, close: Callable[[T], Awaitable[None]]) -> None:
        """Forget all values and await ``close(value)`` for each on its own loop; those of loops that no longer run
        are dropped."""
        with self._lock:
            values = list(self._values.items())
            self._values.clear()
        here = asyncio.get_running_loop()
        for loop, value in values:
            if loop is here:
                await close(value)
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_await(close(value)), loop))


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable
