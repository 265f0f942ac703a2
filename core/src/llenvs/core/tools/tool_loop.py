"""The event loop on which async tools run for callers without a loop of their own.

It is apart from the process's shared loop, which everything else depends on: an async tool that blocks (which it
must not) holds up other tools alone, and is left behind on its loop once that is noticed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_PATIENCE = 1.0  # seconds in which a loop must take a turn

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def start_on_tool_loop(coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """Run `coroutine` on the tools' loop; the future belongs to the running loop. Cancelling it cancels both."""
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, _tool_loop()))


async def leave_if_blocked() -> None:
    """Begin a new loop for the tools to come if the present one takes no turn for a second."""
    global _loop
    loop = _tool_loop()
    turn = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)
    _, pending = await asyncio.wait({asyncio.wrap_future(turn)}, timeout=_PATIENCE)
    if pending:
        with _lock:
            if _loop is loop:
                _loop = None


def _tool_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():  # not alive: this process was forked
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="llenvs-tools", daemon=True)
            _thread.start()
        return _loop
