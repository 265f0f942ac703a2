"""The games, compiled once a session, with as little optimisation as tests need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs_craftax.environment import CraftaxEnvironment

sys.path.insert(0, str(Path(__file__).parent))  # for `craftax_play`


@pytest.fixture(scope="session", autouse=True)
def _surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Half the time for compiling, kept for the second processes of this session and for no other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        patch.setenv("JAX_PLATFORMS", "cpu")
        if "LLENVS_CRAFTAX_CACHE" not in os.environ:
            patch.setenv("LLENVS_CRAFTAX_CACHE", str(tmp_path_factory.mktemp("craftax")))
        yield


@pytest.fixture(scope="session")
def make() -> Iterator[Any]:
    """Makes environments by name, and closes them."""
    made: list[CraftaxEnvironment] = []

    def of(name: str, **options: Any) -> CraftaxEnvironment:
        env = llenvs.make(f"craftax/{name}", **options)
        assert isinstance(env, CraftaxEnvironment)
        made.append(env)
        return env

    yield of
    for env in made:
        env.close()


@pytest.fixture(scope="session")
def classic(make: Any) -> CraftaxEnvironment:
    return make("craftax-classic-text")


@pytest.fixture(scope="session")
def full(make: Any) -> CraftaxEnvironment:
    """The full game; its step takes longest to compile."""
    return make("craftax")
