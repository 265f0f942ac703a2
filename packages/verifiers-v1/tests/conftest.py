"""The tasksets of the tests, as if they were installed: here and in every process that is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs_verifiers_v1.adapter import ADAPTER

MODULES = str(Path(__file__).parent / "modules")
sys.path[:0] = [MODULES, str(Path(__file__).parent)]
os.environ["PYTHONPATH"] = os.pathsep.join([MODULES, *filter(None, [os.environ.get("PYTHONPATH")])])

Make = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes environments, and closes them."""
    made: list[Any] = []

    def make(name: str, **options: Any) -> Any:
        made.append(llenvs.make(f"{ADAPTER.name}/{name}", **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def play(env: Any, task_index: int, *texts: str) -> Any:
    """The last result of an episode of texts."""
    state, _ = env.reset(options={"task_index": task_index})
    for text in texts:
        result = env.step(state, llenvs.Action(text))
        state = result.next_state
    return result


def children() -> list[str]:
    """The commands of this process's children."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[1]
                command = entry.joinpath("cmdline").read_text().replace("\0", " ")
            except OSError:  # it ended meanwhile
                continue
            if int(parent) == os.getpid():
                found.append(command)
    return found
