"""Threads for blocking calls made from an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Call(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    context: contextvars.Context
    function: Callable[[], Any]


class WorkerThreads:
    """Up to `limit` threads, each started when it is first needed; they end when this object is gone.

    What sets them apart from `concurrent.futures.ThreadPoolExecutor`: they are daemons. The interpreter waits for
    that pool's threads when it exits, so one call that hangs (an upstream that never answers) would keep the
    process from ending, after the results are out or after Ctrl-C.
    """

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._lock = threading.Lock()

    async def call(self, function: Callable[[], T]) -> T:
        """``function()`` in a thread, with the caller's context variables.

        `function` must not raise StopIteration or asyncio.CancelledError, which a future cannot carry. When the
        caller is cancelled, a call that has not begun is dropped; one that has goes on and its result is lost.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put(_Call(loop, future, contextvars.copy_context(), function))
        if not self._idle.acquire(blocking=False):
            self._start_thread()
        return await future

    def _start_thread(self) -> None:
        with self._lock:
            if self._started == self._limit:
                return
            self._started += 1
            name = f"{self._name}-{self._started}"
        thread = threading.Thread(target=_work, args=(self._calls, self._idle), name=name, daemon=True)
        weakref.finalize(self, self._calls.put, None).atexit = False
        thread.start()


def _work(calls: SimpleQueue[_Call | None], idle: threading.Semaphore) -> None:
    while True:
        try:
            call = calls.get_nowait()
        except Empty:
            idle.release()
            call = calls.get()
        if call is None:
            return
        _make(call)
        del call  # nothing is kept alive while waiting for the next


def _make(call: _Call) -> None:
    if call.future.cancelled():
        return
    value, error = None, None
    try:
        value = call.context.run(call.function)
    except BaseException as caught:  # noqa: BLE001 - whatever it is, the caller gets it
        error = caught
    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits for the result
        call.loop.call_soon_threadsafe(_settle, call.future, value, error)


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)
