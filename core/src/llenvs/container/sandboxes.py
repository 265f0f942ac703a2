"""Sandboxes: Python environments of their own, one for each adapter and what it needs, made by uv and kept.

A sandbox is a folder in the user's cache directory (``LLENVS_CACHE_DIR`` puts it elsewhere). Its name ends in a
digest of all that decides what is in it, so a change of the plan makes a new one and old ones stay valid. Virtual
environments cannot be moved, so a sandbox is made where it stays and counts once its record, ``sandbox.json``, is
there. A lock keeps two creators apart, and a sandbox in use from being removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llenvs.container.locks import FileLock
from llenvs.container.python_choice import PythonNeeds
from llenvs.container.sandbox_plan import SandboxPlan
from llenvs.container.uv import Uv
from llenvs.core.errors import ContainerFailed, UnknownName

CACHE_VARIABLE = "LLENVS_CACHE_DIR"
"""Environment variable: the directory to use in place of the user's cache directory of LLEnvs."""

_RECORD = "sandbox.json"
_LOCK_SUFFIX = ".lock"


class UnknownSandbox(UnknownName):
    """No sandbox, and no sandbox of an adapter, has this name."""

    kind = "sandbox"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox on disk.

    Attributes:
        name: of its folder, ``adapter-digest``.
        path: the virtual environment.
        adapter: which adapter it holds.
        python: version of its Python, e.g. "3.12.1".
        contents: its distributions, as ``uv pip freeze`` writes them.
        created: when it was made, in seconds since the epoch.
        seconds: how long that took.
    """

    name: str
    path: Path
    adapter: str
    python: str
    contents: tuple[str, ...]
    created: float
    seconds: float

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return _interpreter(self.path)

    @property
    def last_used(self) -> float:
        """When a server was last started in it, in seconds since the epoch."""
        return (self.path / _RECORD).stat().st_mtime

    @property
    def size(self) -> int:
        """Bytes in its own files. Files that uv links from its cache count, though they take their space once."""
        return sum(file.lstat().st_size for file in self.path.rglob("*") if not file.is_dir())


def sandbox_root() -> Path:
    """The directory that holds the sandboxes; it need not exist."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).expanduser().absolute() / "sandboxes"
    from platformdirs import user_cache_path

    return user_cache_path("llenvs", appauthor=False) / "sandboxes"


@contextlib.contextmanager
def open_sandbox(
    plan: SandboxPlan, *, notice: Callable[[str], None] | None = None
) -> Iterator[tuple[Sandbox, int]]:
    """The sandbox of `plan`, made now if need be, and the descriptor of the lock that keeps it in place.

    Whoever inherits the descriptor keeps it as well. Making one takes seconds to minutes.

    Args:
        notice: called with lines about what is being installed; by default they go to stderr.

    Raises:
        ContainerFailed: no uv, no suitable Python, or uv cannot install it; with what uv said.
    """
    tell = notice or _tell
    path = sandbox_root() / plan.name
    lock = FileLock(path.with_name(path.name + _LOCK_SUFFIX))
    try:
        while True:
            lock.acquire(shared=True, on_wait=lambda: tell(f"waiting for another process that makes {plan.name}"))
            sandbox = _read(path)
            if sandbox is not None:
                break
            lock.acquire(on_wait=lambda: tell(f"waiting for another process that makes {plan.name}"))
            if _read(path) is None:
                _create(plan, path, lock.fd, tell)
        os.utime(path / _RECORD)
        yield sandbox, lock.fd
    finally:
        lock.release()


def create_sandbox(plan: SandboxPlan, *, notice: Callable[[str], None] | None = None) -> Sandbox:
    """The sandbox of `plan`, made now if need be. Raises: see `open_sandbox`."""
    with open_sandbox(plan, notice=notice) as (sandbox, _):
        return sandbox


def list_sandboxes() -> list[Sandbox]:
    """All that are complete, by name."""
    found = (_read(path) for path in _folders())
    return [sandbox for sandbox in found if sandbox is not None]


def remove_sandboxes(name: str) -> list[str]:
    """Remove a sandbox, or all sandboxes of an adapter.

    Returns:
        The names of those that were removed.

    Raises:
        UnknownSandbox: nothing of this name is there.
        ContainerFailed: one is in use; those before it are removed.
    """
    sandboxes = list_sandboxes()
    wanted = [s for s in sandboxes if name == s.name or name.replace("-", "_") == s.adapter]
    if not wanted:
        valid = [*dict.fromkeys(s.adapter for s in sandboxes), *(s.name for s in sandboxes)]
        raise UnknownSandbox(name, valid, "list them with: llenvs sandbox list")
    for sandbox in wanted:
        if not _remove(sandbox.path):
            raise ContainerFailed(f"the sandbox {sandbox.name} is in use; end the programs that use it first")
    return [sandbox.name for sandbox in wanted]


def incomplete_sandboxes() -> list[Path]:
    """Folders whose creator died before it was done, or whose Python is gone, and that nobody is working on."""
    incomplete = []
    for path in _folders():
        if _read(path) is None:
            lock = FileLock(path.with_name(path.name + _LOCK_SUFFIX))
            if lock.acquire(wait=False):
                incomplete.append(path)
                lock.release()
    return incomplete


def remove_incomplete(path: Path) -> bool:
    """Remove one of `incomplete_sandboxes`; False when somebody works on it by now."""
    return _remove(path, only_incomplete=True)


# -- on disk ----------------------------------------------------------------------------------------------


def _folders() -> list[Path]:
    root = sandbox_root()
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _read(path: Path) -> Sandbox | None:
    """The sandbox in `path`; None when there is none, or not a complete one whose Python still exists."""
    try:
        record = json.loads((path / _RECORD).read_text(encoding="utf-8"))
        sandbox = Sandbox(name=path.name, path=path, **{**record, "contents": tuple(record["contents"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return sandbox if sandbox.interpreter.exists() else None


def _write_record(path: Path, record: dict[str, Any]) -> None:
    partial = path / f"{_RECORD}.partial"
    partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    partial.rename(path / _RECORD)


def _remove(path: Path, *, only_incomplete: bool = False) -> bool:
    lock = FileLock(path.with_name(path.name + _LOCK_SUFFIX))
    if not lock.acquire(wait=False):
        return False
    if only_incomplete and _read(path) is not None:
        lock.release()
        return False
    # the record first: what is left of an interrupted removal must not look complete
    (path / _RECORD).unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    lock.remove()
    return True


def _interpreter(path: Path) -> Path:
    return path / "bin" / "python"


# -- making one -------------------------------------------------------------------------------------------


def _create(plan: SandboxPlan, path: Path, lock_fd: int, tell: Callable[[str], None]) -> None:
    started = time.monotonic()
    uv = Uv()
    python = _choose_python(plan, uv)
    if path.exists():
        shutil.rmtree(path)  # of a creator that died
    wanted = ", ".join([*map(str, plan.parts), *plan.packages])
    tell(f"making the sandbox {plan.name} once: {wanted}")
    # uv inherits the lock: when we are killed, nobody touches the folder before it has ended
    run = _Runner(uv, plan.workspace or path.parent, lock_fd, f"the sandbox of adapter {plan.adapter!r}")
    try:
        run(["venv", "--no-project", "--python", python, str(path)])
        with tempfile.TemporaryDirectory(prefix="llenvs-overrides-") as folder:
            overrides = Path(folder) / "overrides.txt"
            overrides.write_text("".join(f"{each}\n" for each in plan.overrides), encoding="utf-8")
            arguments = ["--override", str(overrides)] if plan.overrides else []
            for part in plan.parts:
                arguments += part.arguments
            target = ["--python", str(_interpreter(path))]
            run(["pip", "install", *target, *arguments, *plan.packages])
        contents = run(["pip", "freeze", "--python", str(_interpreter(path))]).splitlines()
        version = _python_version(path)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    seconds = round(time.monotonic() - started, 2)
    record = {
        "adapter": plan.adapter,
        "python": version,
        "contents": contents,
        "created": time.time(),
        "seconds": seconds,
    }
    _write_record(path, record)
    tell(f"the sandbox {plan.name} is ready (Python {version}, {len(contents)} packages, {seconds:.1f} s)")


def _python_version(path: Path) -> str:
    """From ``pyvenv.cfg``, where uv notes it."""
    lines = (path / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    values = dict(line.split(" = ", 1) for line in lines if " = " in line)
    return values["version_info"]


class _Runner:
    """Runs uv and turns its failure into an error."""

    def __init__(self, uv: Uv, cwd: Path, lock_fd: int, what: str) -> None:
        self._uv = uv
        self._cwd = cwd
        self._lock_fd = lock_fd
        self._what = what

    def __call__(self, arguments: Sequence[str]) -> str:
        done = self._uv.run(arguments, cwd=self._cwd, pass_fds=[self._lock_fd])
        if done.returncode != 0:
            raise ContainerFailed(
                f"{self._what} could not be made: uv {' '.join(arguments[:2])} failed ({self._uv.version})",
                done.stderr,
            )
        return done.stdout


def _choose_python(plan: SandboxPlan, uv: Uv) -> str:
    """Path of the interpreter to make the sandbox with."""
    if plan.python is not None:
        found = uv.find_python(plan.python)
        if found is None:
            raise ContainerFailed(
                f"there is no Python {plan.python} on this machine for adapter {plan.adapter!r}; "
                f"get it with: uv python install {plan.python}"
            )
        return found
    versions = _needs(plan, uv).suitable_versions()
    for version in versions:
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            return sys.executable
        found = uv.find_python(version)
        if found is not None:
            return found
    if not versions:
        raise ContainerFailed(f"the metadata of adapter {plan.adapter!r} allows no Python from 3.11 on")
    needed = " or ".join(sorted(versions))
    raise ContainerFailed(
        f"adapter {plan.adapter!r} needs Python {needed}, and this machine has none of them; "
        f"get one with: uv python install {versions[0]}"
    )


def _needs(plan: SandboxPlan, uv: Uv) -> PythonNeeds:
    part = plan.parts[-1]
    if part.folder is not None:
        return PythonNeeds.from_project(part.folder)
    with tempfile.TemporaryDirectory(prefix="llenvs-metadata-") as folder:
        # the adapter's own files alone, for whichever Python they are meant; we read what they say about it
        for version in PythonNeeds("", ()).suitable_versions():
            install = ["pip", "install", "--no-deps", "--target", folder, "--python-version", version]
            done = uv.run([*install, part.requirement], cwd=Path(folder))
            found = sorted(Path(folder).glob("*.dist-info/METADATA"))
            if done.returncode == 0 and found:
                return PythonNeeds.from_metadata(found[0].read_text(encoding="utf-8"))
    raise ContainerFailed(f"{part.requirement} cannot be installed ({uv.version})", done.stderr)


def _tell(line: str) -> None:
    sys.stderr.write(f"llenvs: {line}\n")
    sys.stderr.flush()
