"""Fixtures of the adapter's tests; nothing is downloaded, the upstream ships its data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs_tau.environment import TauEnvironment

sys.path.insert(0, str(Path(__file__).parent))  # for `tau_play`


@pytest.fixture
def tau() -> Iterator[Callable[..., TauEnvironment]]:
    """Makes environments, and closes them."""
    made: list[TauEnvironment] = []

    def make(name: str, **options: Any) -> TauEnvironment:
        env = llenvs.make(f"tau/{name}", **options)
        assert isinstance(env, TauEnvironment)
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()
