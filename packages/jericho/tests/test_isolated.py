"""Behind a server, in another process."""

from __future__ import annotations

import random
from typing import Any

import pytest

import llenvs
from llenvs import State
from llenvs.core.encoding import dumps
from llenvs.testing import check_walk


def _policy(state: State[Any], rng: random.Random) -> str:
    commands = ["open mailbox", "north", "south", "east", "west", "open window", "enter house", "take all", "wait"]
    return rng.choice(commands)


def test_walks_branch_anywhere_through_the_process_runtime(games: str) -> None:
    pytest.importorskip("llenvs_container")
    here = llenvs.make("jericho/zork1-r119", games_dir=games)
    there = llenvs.make("jericho/zork1-r119", games_dir=games, container="process")
    with here, there:
        assert dumps(there.reset(seed=3)[0]) == dumps(here.reset(seed=3)[0])
        check_walk(here, _policy, seed=3)
        check_walk(here, _policy, through=there, seed=3)
