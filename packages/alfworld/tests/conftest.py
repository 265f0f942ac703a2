"""Games: from ALFWORLD_DATA, or from the folder `shared` beside the checkout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs_alfworld.environment import AlfworldEnvironment

sys.path.insert(0, str(Path(__file__).parent))  # for `alfworld_play`

_BESIDE = Path(__file__).parents[4] / "shared" / "data" / "alfworld"
_LEGACY = (
    "legacy_2.1.1/valid_unseen/pick_and_place_simple-SoapBottle-None-Toilet-424/trial_T20190907_004321_405868"
)


@pytest.fixture(scope="session")
def data_dir() -> str:
    folder = Path(os.environ.get("ALFWORLD_DATA") or _BESIDE)
    if not (folder / "json_2.1.1" / "valid_seen").is_dir():
        pytest.skip("no games here: name their folder with ALFWORLD_DATA")
    if len(list((folder / "json_2.1.1").rglob("game.tw-pddl"))) != 18:
        pytest.skip("the tests know the 18 games of shared/data/alfworld; ALFWORLD_DATA names others")
    return str(folder)


@pytest.fixture(scope="session")
def legacy_game(data_dir: str) -> str:
    """A game made by ALFWorld before 0.4."""
    return str(Path(data_dir, _LEGACY, "game.tw-pddl"))


@pytest.fixture(scope="session")
def alfworld(data_dir: str) -> Iterator[Callable[..., AlfworldEnvironment]]:
    """Makes environments, each once (its engine takes a second or two to start), and closes them."""
    made: dict[str, AlfworldEnvironment] = {}

    def make(name: str = "train", **options: Any) -> AlfworldEnvironment:
        key = f"{name} {sorted(options.items())}"
        if key not in made:
            known = {"max_live": 1, "max_steps": None, **options}
            if "/" not in name:
                known.setdefault("data_dir", data_dir)
            env = llenvs.make(f"alfworld/{name}", **known)
            assert isinstance(env, AlfworldEnvironment)
            made[key] = env
        return made[key]

    yield make
    for env in made.values():
        env.close()
