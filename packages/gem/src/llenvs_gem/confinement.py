"""A second wall behind the guard: what the worker process cannot do once it serves."""

from __future__ import annotations

import os
import sys
from typing import Any

MEMORY_LIMIT = 4 << 30
"""Address space of the worker in bytes."""
_OUTPUT_LIMIT = 16 << 20  # of what it may write, which is its last words alone

_EVENTS = """
    os.chmod os.chown os.exec os.fork os.forkpty os.kill os.killpg os.link os.mkdir os.posix_spawn os.remove
    os.rename os.rmdir os.spawn os.symlink os.system os.truncate os.unlink os.utime pty.spawn subprocess.Popen
    shutil.copyfile shutil.copytree shutil.move shutil.rmtree
    socket.connect socket.bind socket.getaddrinfo socket.gethostbyname socket.sendto
    ftplib.connect http.client.connect smtplib.connect urllib.Request webbrowser.open
"""
_FORBIDDEN = frozenset(_EVENTS.split())
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine() -> None:
    """From now on this process cannot write files, start processes, use the network or take much memory.

    Audit hooks are no sandbox against code that knows them; the guard keeps such code from running at all. This is
    for what slips through, and for the programs that reasoning_gym's codeio runs to make its items.
    """
    sys.addaudithook(_refuse)
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_LIMIT),
        (resource.RLIMIT_FSIZE, _OUTPUT_LIMIT),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN:
        raise PermissionError(f"{event} is not allowed in the worker")
    if event == "open":
        _, mode, flags = args
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        if writes or (isinstance(flags, int) and flags & _WRITING):
            raise PermissionError("opening a file for writing is not allowed in the worker")
