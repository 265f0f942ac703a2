"""A second wall around a worker process that judges a model's text: what it cannot do once it serves."""

from __future__ import annotations

import os
import sys
from typing import Any

MEMORY_LIMIT = 4 << 30
"""Address space of a confined process in bytes."""

_EVENTS = """
    os.chmod os.chown os.exec os.fork os.forkpty os.kill os.killpg os.link os.mkdir os.posix_spawn os.remove
    os.rename os.rmdir os.spawn os.symlink os.system os.truncate os.unlink os.utime pty.spawn subprocess.Popen
    shutil.copyfile shutil.copytree shutil.move shutil.rmtree
    socket.connect socket.bind socket.getaddrinfo socket.gethostbyname socket.sendto
    ftplib.connect http.client.connect smtplib.connect urllib.Request webbrowser.open
"""
_FORBIDDEN = frozenset(_EVENTS.split())
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(*, written: int = 0) -> None:
    """From now on this process cannot write files, start processes, use the network or take much memory.

    Audit hooks are no sandbox against code that knows them. This is for what slips through the checks of whoever
    hands a model's text to a parser or an evaluator; programs of a model need a sandbox.

    Args:
        written: bytes that it may write to a file that is open already (its log).
    """
    sys.addaudithook(_refuse)
    try:
        import resource
    except ImportError:  # not on Windows
        return
    limits = ((resource.RLIMIT_AS, MEMORY_LIMIT), (resource.RLIMIT_FSIZE, written), (resource.RLIMIT_CORE, 0))
    for limit, value in limits:
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN:
        raise PermissionError(f"{event} is not allowed in a confined worker process")
    if event == "open":
        _path, mode, flags = args
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        if writes or (isinstance(flags, int) and flags & _WRITING_FLAGS):
            raise PermissionError("opening a file for writing is not allowed in a confined worker process")
