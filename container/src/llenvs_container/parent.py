"""Ending with the parent, by whatever signal it died."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable


def end_with_parent(pid: int, end: Callable[[], None]) -> None:
    """Call `end`, from a thread, when the process `pid` is gone; at once when it is already.

    Linux's parent-death signal is of no use: it comes when the *thread* that started the child ends.
    """
    threading.Thread(target=_watch, args=(pid, end), name="parent-watch", daemon=True).start()


def _watch(pid: int, end: Callable[[], None]) -> None:
    try:
        descriptor = os.pidfd_open(pid)  # readable when the process has ended
    except ProcessLookupError:
        end()
        return
    except (AttributeError, OSError):  # no Linux, or an old one
        while _exists(pid):
            time.sleep(0.5)
        end()
        return
    select.select([descriptor], [], [])
    end()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
