"""The loop that an environment's coroutines run on: one thread per environment."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_LEAVING = 5.0  # seconds that a closed loop's thread may take to end


class EventLoopThread:
    """Runs coroutines for callers in any thread, in a daemon thread that starts at the first of them.

    The loop is not the shared one of `llenvs.core.loop`: tools and reward functions may block, and whatever they
    open (HTTP clients, locks) belongs to the loop on which they first ran.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What `coroutine` returns or raises; an interrupted caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C; nothing to cancel when the coroutine itself raised
            raise

    def close(self) -> None:
        """End the thread. May be called twice; a later `run` starts another."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
            ours = self._process == os.getpid()
        if loop is not None and thread is not None and ours:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():
                thread.join(_LEAVING)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():  # a forked copy has no such thread
                self._process = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
