"""What is written to standard output, by Python and by everything below it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator


class Captured:
    """Text that was written to standard output while `captured_output` was on."""

    def __init__(self) -> None:
        self.text = ""


@contextlib.contextmanager
def captured_output(into: Captured) -> Iterator[None]:
    """Append to `into` what this process and its children write to standard output in the block.

    Both ways are caught: `sys.stdout`, and file descriptor 1 (C libraries, child processes).
    """
    replacement = io.StringIO()
    with tempfile.TemporaryFile() as file:
        restore = _redirect(file.fileno())
        try:
            with contextlib.redirect_stdout(replacement):
                yield
        finally:
            restore()
            file.seek(0)
            into.text += replacement.getvalue() + file.read().decode(errors="replace")


def _redirect(target: int) -> _Restore:
    try:
        _flush()
        saved = os.dup(1)
    except OSError:  # a process without standard output, a daemon say
        return _Restore(None)
    os.dup2(target, 1)
    return _Restore(saved)


class _Restore:
    def __init__(self, saved: int | None) -> None:
        self.saved = saved

    def __call__(self) -> None:
        if self.saved is not None:
            _flush()
            os.dup2(self.saved, 1)
            os.close(self.saved)


def _flush() -> None:
    """Empty the buffers above file descriptor 1: Python's and the C library's."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            stream.flush()
    if os.name == "posix":
        import ctypes

        ctypes.CDLL(None).fflush(None)
