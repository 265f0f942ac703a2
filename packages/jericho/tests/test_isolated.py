"""Behind a server, in another process."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import llenvs
from llenvs import Action
from llenvs.core.encoding import dumps


def test_walks_branch_anywhere_through_the_process_runtime(games: str) -> None:
    pytest.importorskip("llenvs_container")
    commands = ["open mailbox", "north", "south", "east", "west", "open window", "enter house", "take all", "wait"]
    rng = random.Random(0)
    here = llenvs.make("jericho/zork1-r119", games_dir=games)
    there = llenvs.make("jericho/zork1-r119", games_dir=games, container="process")
    with here, there:
        transitions = []
        state, _ = here.reset(seed=3)
        assert dumps(there.reset(seed=3)[0]) == dumps(state)
        for _ in range(50):
            action = Action(rng.choice(commands))
            result = here.step(state, action)
            transitions.append((state, action, result))
            state = result.next_state
        chosen = rng.sample(transitions, 10) * 2
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda t: there.step(t[0], t[1]), chosen))
    assert [dumps(r) for r in results] == [dumps(t[2]) for t in chosen]
