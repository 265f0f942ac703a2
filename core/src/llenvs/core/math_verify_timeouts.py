"""Time limits of math-verify in threads.

math-verify bounds its work by SIGALRM, which only the main thread can use: in any other it raises ValueError,
which scorers take for a wrong answer. Environments run in threads here, so its decorator `timeout` is wrapped to
use another way there: an exception that a timer raises in the working thread. Like a signal's, it waits for the
next bytecode.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


@functools.cache
def install() -> None:
    """Wrap `timeout` where math-verify uses it. In the main thread it stays as it is."""
    from math_verify import grader, parser

    for module in (grader, parser):
        module.timeout = _anywhere(module.timeout)


def _anywhere(timeout: Callable[..., Any]) -> Callable[..., Any]:
    from math_verify.errors import TimeoutException

    @functools.wraps(timeout)
    def decorator(timeout_seconds: int | None = 10) -> Callable[..., Any]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            by_signal = timeout(timeout_seconds)(function)
            by_timer = within(timeout_seconds, TimeoutException)(function)

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                main = threading.current_thread() is threading.main_thread()
                return (by_signal if main else by_timer)(*args, **kwargs)

            return wrapper

        return decorate

    return decorator


def within(
    seconds: float | None, error: type[BaseException]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: `error` is raised in the calling thread when the function takes longer than `seconds`; None or
    0 for no limit."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not seconds or seconds <= 0:
            return function

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            thread = ctypes.c_ulong(threading.get_ident())
            lock = threading.Lock()
            over = False

            def interrupt() -> None:
                with lock:
                    if not over:
                        _raise_in(thread, ctypes.py_object(error))

            timer = threading.Timer(seconds, interrupt)
            timer.daemon = True
            timer.start()
            try:
                return function(*args, **kwargs)
            finally:
                with lock:
                    over = True
                    _raise_in(thread, None)  # what was to be raised and was not yet, shall not be raised elsewhere
                timer.cancel()

        return wrapper

    return decorate
