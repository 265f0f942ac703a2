"""One persistent event loop in a thread, for callers without a loop of their own.

Clients of HTTP libraries belong to the loop that first used them; giving every sync call its own loop breaks
them. So all sync calls of a process share this one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

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
            _thread = threading.Thread(target=loop.run_forever, name="llenvs-loop", daemon=True)
            _thread.start()
            _loop = loop
        return _loop


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end from synchronous code; also inside a running loop (a notebook).

    KeyboardInterrupt cancels the coroutine and waits for its clean-up.
    """
    loop = shared_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise RuntimeError("a sync call from inside the shared loop would wait for itself; use the async form")
    future = asyncio.run_coroutine_threadsafe(_own_task(coroutine), loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        finished = threading.Event()
        future.add_done_callback(lambda _: finished.set())
        finished.wait(timeout=30)
        raise


async def _own_task(coroutine: Coroutine[Any, Any, T]) -> T:
    return await coroutine
