"""Keeps to the upstream what it would do to the whole process: signal handlers, exit hooks, logs, prints.

Every environment object of the upstream takes over SIGINT and SIGTERM (which fails in any thread but the main one)
and registers an exit hook that starts an event loop. Importing it silences the logger `verifiers`, and building an
environment shows the progress bars of `datasets`.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from llenvs.core.math_verify_timeouts import install

_kept_in: ContextVar[bool] = ContextVar("llenvs_verifiers_kept_in", default=False)
_lock = threading.RLock()


class _Signals:
    """The module `signal`, as the upstream sees it: while we load an environment, and off the main thread, where
    the real one refuses anyway, handlers are not set."""

    def __getattr__(self, name: str) -> Any:
        return getattr(signal, name)

    def signal(self, number: int, handler: Any) -> Any:
        if _kept_in.get() or threading.current_thread() is not threading.main_thread():
            return signal.getsignal(number)
        return signal.signal(number, handler)


class _ExitHooks:
    """The module `atexit`, as the upstream sees it: our environments are torn down when they are closed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(atexit, name)

    def register(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function if _kept_in.get() else atexit.register(function, *args, **kwargs)


@contextlib.contextmanager
def kept_in() -> Iterator[None]:
    """Within it the upstream and a module of its may be imported and built; standard output goes to standard
    error meanwhile. One thread at a time."""
    with _lock:
        token = _kept_in.set(True)
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        try:
            with contextlib.redirect_stdout(sys.stderr):
                _take_in()
                with _no_progress_bars():
                    yield
        finally:
            _kept_in.reset(token)
            root.handlers[:] = handlers
            root.setLevel(level)


def _take_in() -> None:
    first = "verifiers.legacy" not in sys.modules
    from verifiers.legacy.envs import environment

    install()
    if not isinstance(environment.signal, _Signals):
        environment.signal = _Signals()
        environment.atexit = _ExitHooks()
    if first:  # its import takes the logger's handlers away and keeps what it says from everybody else's
        logger = logging.getLogger("verifiers")
        logger.propagate = True
        logger.addHandler(logging.NullHandler())


@contextlib.contextmanager
def _no_progress_bars() -> Iterator[None]:
    from datasets.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()
