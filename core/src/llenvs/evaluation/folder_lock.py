"""A lock on a run folder, released by the system when its holder dies."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

_LOCK_FILE = ".lock"

_held: set[str] = set()
_guard = threading.Lock()


class FolderLock:
    """Keeps two runs out of one folder.

    The lock is the system's record lock on the file ``.lock``: it goes when the process ends, however it ends,
    and child processes do not inherit it. Since it does not tell two runs of one process apart, those are
    told apart by a set.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOCK_FILE
        self._name = str(folder.resolve())
        self._file: int | None = None

    def acquire(self) -> int | None:
        """None when the lock was taken; else the id of the process that holds it (0 when unknown)."""
        with _guard:
            if self._name in _held:
                return os.getpid()
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                _lock(file)
            except OSError:
                text = os.read(file, 32).decode("ascii", "replace").strip()
                os.close(file)
                return int(text) if text.isdecimal() else 0
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
            self._file = file
            _held.add(self._name)
            return None

    def release(self) -> None:
        """Let the next one in; twice is fine."""
        with _guard:
            if self._file is not None:
                os.close(self._file)
                self._file = None
                _held.discard(self._name)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        # far behind the text, so that others can read who holds it
        os.lseek(file, 1 << 20, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
