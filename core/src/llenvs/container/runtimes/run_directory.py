"""Run directories: the private folder of one running server, which others can tell from a leaked one.

They lie in ``llenvs-<uid>`` under the system's directory for temporary files and hold the socket, the log and the
secrets of a server. A file in each is locked (flock) as long as its owner or the guardian lives, so a directory
whose lock is free is a leak, whatever happened to pids since.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from llenvs.core.errors import ContainerFailed

LABEL_VARIABLE = "LLENVS_RUN"
"""Environment variable of every process that we start: the path of its run directory."""

_LOCK = "lock"
_UNBORN = ".new-"
"""Prefix of directories that are being made."""
_NEWBORN = 60.0
"""Seconds in which a directory that is not complete is being made, not leaked."""


class RunDirectory:
    """A new private directory (mode 0700), locked until `release`.

    Attributes: `path`; `lock_fd`, the descriptor that holds the lock (whoever inherits it holds it too).

    Raises:
        ContainerFailed: the folder that holds it belongs to somebody else.
    """

    def __init__(self) -> None:
        root = _own_root()
        _sweep(root)
        self.path = root / secrets.token_hex(6)
        # Made and locked under another name: between the two steps it would look leaked to others who sweep.
        unborn = self.path.with_name(_UNBORN + self.path.name)
        unborn.mkdir(mode=0o700)
        self.lock_fd = os.open(unborn / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _try_lock(self.lock_fd)
        unborn.rename(self.path)

    def write_secret(self, name: str, content: bytes, mode: int = 0o600) -> Path:
        """Write a file that only the owner can read (with another `mode`: that whoever reaches it can)."""
        path = self.path / name
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(fd, "wb") as file:
            os.fchmod(fd, mode)  # whatever the umask is
            file.write(content)
        return path

    def release(self) -> None:
        """Give up the lock in this process; others that inherited it keep it. Twice is fine."""
        if self.lock_fd >= 0:
            os.close(self.lock_fd)
            self.lock_fd = -1

    def remove(self) -> None:
        """Release the lock and remove the directory. Twice is fine."""
        self.release()
        shutil.rmtree(self.path, ignore_errors=True)


def leaked_directories() -> list[Path]:
    """Run directories of this user whose owner is gone."""
    try:
        root = _own_root()
    except ContainerFailed:
        return []
    return list(_leaked(root))


def is_live(path: Path) -> bool:
    """Whether `path` is a run directory whose owner or guardian lives."""
    if path.name.startswith(_UNBORN) and _is_newborn(path):
        return True
    try:
        fd = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return _is_newborn(path)
    try:
        return not _try_lock(fd)
    finally:
        os.close(fd)


def _leaked(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        with contextlib.suppress(FileNotFoundError):  # its owner removes it at this moment
            if path.is_dir() and not is_live(path):
                yield path


def _sweep(root: Path) -> None:
    """Remove what earlier runs left, so that leaks do not add up where nobody runs the clean-up command."""
    for path in _leaked(root):
        shutil.rmtree(path, ignore_errors=True)


def _own_root() -> Path:
    root = Path(tempfile.gettempdir()) / f"llenvs-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    # somebody else may have made it, or a link in its place, to read our secrets
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ContainerFailed(
            f"{root} must be a directory of yours that nobody else can enter; remove it, or set TMPDIR"
        )
    return root


def _is_newborn(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < _NEWBORN
    except FileNotFoundError:
        return False


def _try_lock(fd: int) -> bool:
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
