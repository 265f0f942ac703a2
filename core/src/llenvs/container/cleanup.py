"""Finding and removing what isolated environments left behind.

Normally nothing is left: guardians see to that. This finds what is, after the machine's owner or an out-of-memory
killer ended guardians too: each process and container carries the path of its run directory, and is a leak when
nobody holds that directory any more.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llenvs.container.runtimes.run_directory import LABEL_VARIABLE, is_live, leaked_directories
from llenvs.container.sandboxes import incomplete_sandboxes, remove_incomplete
from llenvs.core.errors import ContainerFailed

ENGINES = ("docker", "podman", "nerdctl")
"""Command lines that are asked for containers, where they are on PATH."""


@dataclass(frozen=True, slots=True)
class Leaks:
    """What was left behind.

    Attributes:
        processes: pids.
        containers: engine and id of each.
        directories: run directories, with their sockets and logs.
        sandboxes: folders of sandboxes that were never finished.
    """

    processes: tuple[int, ...]
    containers: tuple[tuple[str, str], ...]
    directories: tuple[Path, ...]
    sandboxes: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.processes) + len(self.containers) + len(self.directories) + len(self.sandboxes)

    def __str__(self) -> str:
        counts = (
            (len(self.processes), "process", "processes"),
            (len(self.containers), "container", "containers"),
            (len(self.directories), "run directory", "run directories"),
            (len(self.sandboxes), "unfinished sandbox", "unfinished sandboxes"),
        )
        return ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts if n) or "nothing"


def find_leaks() -> Leaks:
    """What this user's programs left behind on this machine. What belongs to a running one is not among it."""
    return Leaks(
        processes=tuple(_leaked_processes()),
        containers=tuple(pair for engine in ENGINES for pair in _leaked_containers(engine)),
        directories=tuple(leaked_directories()),
        sandboxes=tuple(incomplete_sandboxes()),
    )


def remove_leaks(leaks: Leaks) -> None:
    """End and remove what `find_leaks` found.

    Raises:
        ContainerFailed: an engine refuses to remove a container.
    """
    for pid in leaks.processes:
        # a pid may have been given to another process since
        if _run_directory(pid) is not None:
            os.kill(pid, signal.SIGKILL)
    for engine, container in leaks.containers:
        done = subprocess.run([engine, "rm", "--force", container], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ContainerFailed(f"{engine} cannot remove the container {container}", done.stderr)
    for path in leaks.directories:
        shutil.rmtree(path, ignore_errors=True)
    for path in leaks.sandboxes:
        remove_incomplete(path)


def _leaked_processes() -> Iterator[int]:
    """Processes of this user whose run directory nobody holds (Linux: read from ``/proc``)."""
    proc = Path("/proc")
    for entry in proc.iterdir() if proc.is_dir() else ():
        if entry.name.isdecimal():
            directory = _run_directory(int(entry.name))
            if directory is not None and not is_live(directory):
                yield int(entry.name)


def _run_directory(pid: int) -> Path | None:
    """The run directory that the process was started for, None for a process that is not ours."""
    try:
        entry = Path("/proc") / str(pid)
        if entry.stat().st_uid != os.getuid():
            return None
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # it ended at this moment
        return None
    prefix = f"{LABEL_VARIABLE}=".encode()
    value = next((each.removeprefix(prefix) for each in variables if each.startswith(prefix)), b"")
    return Path(os.fsdecode(value)) if value else None


def _leaked_containers(engine: str) -> Iterator[tuple[str, str]]:
    from llenvs.container.runtimes.docker import OWNER_LABEL, RUN_LABEL, owner

    command = shutil.which(engine)
    if command is None:
        return
    listing = [command, "ps", "--all", "--no-trunc", "--filter", f"label={OWNER_LABEL}={owner()}"]
    try:
        found = subprocess.run(
            [*listing, "--format", f'{{{{.ID}}}}\t{{{{.Label "{RUN_LABEL}"}}}}'],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return  # an engine that does not answer has nothing that we could remove
    for line in found.stdout.splitlines() if found.returncode == 0 else ():
        container, _, directory = line.partition("\t")
        if not is_live(Path(directory)):
            yield command, container
