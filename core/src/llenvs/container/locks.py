"""A lock file between processes that may be removed while others wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


class FileLock:
    """A lock on `path`, held exclusively or shared, by this process and whoever inherits `fd`.

    It ends with the last of them, however they end (flock). Not safe under threads; make one for each use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fd = -1

    def acquire(
        self, *, shared: bool = False, wait: bool = True, on_wait: Callable[[], None] | None = None
    ) -> bool:
        """Take the lock; a lock that is held already is changed to the other kind, not atomically.

        Args:
            wait: wait for as long as it takes; else return False at once when somebody has it.
            on_wait: called before waiting.
        """
        import fcntl

        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            if self.fd < 0:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self.fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    self.release()
                    return False
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(self.fd, kind)
            if self._is_current():
                return True
            self.release()  # it was removed while we waited; another file may stand there now

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(self._path))
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        """Remove the file and give up the lock, which must be held exclusively."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Give it up in this process. Twice is fine."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
