"""Story files: from LLENVS_JERICHO_GAMES, or from the folder `shared` beside the checkout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs_jericho.environment import JerichoEnvironment

sys.path.insert(0, str(Path(__file__).parent))  # for `jericho_play`

_BESIDE = Path(__file__).parents[4] / "shared" / "data" / "jericho"


@pytest.fixture(scope="session")
def games() -> str:
    folder = Path(os.environ.get("LLENVS_JERICHO_GAMES") or _BESIDE)
    if not (folder / "zork1-r119.z3").is_file():
        pytest.skip("no story files here: name their folder with LLENVS_JERICHO_GAMES")
    return str(folder)


@pytest.fixture
def game(games: str) -> Iterator[Callable[..., JerichoEnvironment]]:
    """Makes environments, and closes them."""
    made: list[JerichoEnvironment] = []

    def make(name: str, **options: Any) -> JerichoEnvironment:
        env = llenvs.make(f"jericho/{name}", **{"games_dir": games, "max_steps": None, **options})
        assert isinstance(env, JerichoEnvironment)
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()
