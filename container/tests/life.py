"""What the tests of life cycles share: the toy adapter, a place of their own, and looking for what is left."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from llenvs.container import ContainerConfig

TOYS = Path(__file__).parent / "toys"
LIFE = {"name": "life", "adapter": "toy_life"}


def process_config(**fields: object) -> ContainerConfig:
    """Runtime "process" with the toy adapter on the server's path."""
    return ContainerConfig.model_validate({"env": {"PYTHONPATH": str(TOYS)}, "start_timeout": 60.0, **fields})


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    children: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):  # each thread has those that it started itself
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children += map(int, thread.read_text().split())
    return [each for child in children for each in (child, *descendants(child))]


def eventually(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def none_running(pids: Iterable[int]) -> bool:
    """Whether none of `pids` runs."""
    return not any(is_running(pid) for pid in pids)


def run_directories(place: Path) -> list[Path]:
    """Run directories under the temporary directory `place`."""
    root = place / f"llenvs-{os.getuid()}"
    return sorted(root.iterdir()) if root.is_dir() else []
