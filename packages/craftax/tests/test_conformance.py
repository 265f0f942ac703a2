"""The promises of the contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from craftax_play import Make

from llenvs import Action, State
from llenvs.testing import check_environment, check_walk, check_walk_in_second_process

ACTIONS = (
    "left",
    "right",
    "up",
    "down",
    "do",
    "place_stone",
    "place table",
    "Sleep",
    "7",
    "fly",
    "make_wood_pickaxe",
)


def policy(state: State[Any], rng: random.Random) -> Action:
    return Action(rng.choice(ACTIONS))


def test_classic() -> None:
    report = check_environment("craftax/craftax-classic-text", options={"max_timesteps": 6}, actions=policy)
    assert not {"second_process", "threads", "odd_actions"} & set(report.skipped), str(report)


@pytest.mark.parametrize("name", ["craftax-classic-pixels", "craftax"])
def test_other_forms(name: str) -> None:
    check_environment(f"craftax/{name}", options={"size": 6}, actions=policy, second_process=False)


def test_walks_branch_anywhere(make: Make) -> None:
    check_walk(make("craftax-classic", max_live=3), policy)
    check_walk(make("craftax", max_live=3, key_mode="state_rng"), policy, seed=1)


def test_walks_branch_anywhere_through_the_process_runtime(make: Make) -> None:
    pytest.importorskip("llenvs_container")
    with make("craftax-classic-text") as here:
        import llenvs

        with llenvs.make("craftax/craftax-classic-text", container="process") as there:
            check_walk(here, policy, through=there, seed=2)


def test_walks_branch_anywhere_in_a_second_process() -> None:
    check_walk_in_second_process("craftax/craftax-classic", {}, policy, seed=3)
