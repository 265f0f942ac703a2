"""Data: from LLENVS_AVIARY_DATA, or from the folder `shared` beside the checkout."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `aviary_own` and `aviary_play`
# before `datasets` is imported, here and in the processes that tests start: no network, no cache left behind
_cache = tempfile.TemporaryDirectory(prefix="llenvs-aviary-tests-", ignore_cleanup_errors=True)
os.environ["HF_HOME"] = _cache.name
os.environ["HF_HUB_OFFLINE"] = "1"

from aviary_play import data_folder  # noqa: E402

import llenvs  # noqa: E402
from llenvs_aviary.environment import AviaryEnvironment  # noqa: E402

OWN = str(Path(__file__).with_name("aviary_own.py"))


def _data(name: str) -> str:
    folder = data_folder() / name
    if not folder.is_dir():
        pytest.skip("no data here: name the folder that holds gsm8k and hotpotqa with LLENVS_AVIARY_DATA")
    return str(folder)


@pytest.fixture(scope="session")
def gsm8k() -> str:
    return _data("gsm8k")


@pytest.fixture(scope="session")
def hotpotqa() -> str:
    return _data("hotpotqa")


@pytest.fixture
def make() -> Iterator[Callable[..., AviaryEnvironment]]:
    """Makes environments, and closes them."""
    made: list[AviaryEnvironment] = []

    def make_one(name: str, **options: Any) -> AviaryEnvironment:
        env = llenvs.make(f"aviary/{name}", **options)
        assert isinstance(env, AviaryEnvironment)
        made.append(env)
        return env

    yield make_one
    for env in made:
        env.close()


@pytest.fixture
def own(make: Callable[..., AviaryEnvironment]) -> Callable[..., AviaryEnvironment]:
    """Makes environments of `aviary_own` by name."""
    return lambda name, **options: make("custom", env=f"{OWN}:{name}", **options)
