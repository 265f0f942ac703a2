"""The environment modules of the tests, as if they were installed: here and in every process that is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs_verifiers.adapter import ADAPTER

MODULES = str(Path(__file__).parent / "modules")
sys.path[:0] = [MODULES, str(Path(__file__).parent)]
os.environ["PYTHONPATH"] = os.pathsep.join([MODULES, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ["HF_HUB_OFFLINE"] = "1"

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
