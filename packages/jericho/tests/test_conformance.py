"""The promises of the contract, also in a second process from JSON alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from llenvs import Action, State
from llenvs.testing import check_environment, check_walk_in_second_process

COMMANDS = ["open mailbox", "take leaflet", "north", "east", "south", "west", "up", "take all", "look", "wait"]


def _policy(state: State[Any], rng: random.Random) -> Action:
    return Action(rng.choice(COMMANDS))


@pytest.mark.parametrize("name", ["zork1-r119", "lanternhouse", "tw-simple-dense"])
def test_conformance(games: str, name: str) -> None:
    report = check_environment(f"jericho/{name}", options={"games_dir": games, "max_live": 2}, actions=_policy)
    assert not {"second_process", "threads", "odd_actions"} & set(report.skipped), str(report)


def test_all_games(games: str) -> None:
    check_environment(
        "jericho/all", options={"games_dir": games, "inventory": True, "max_live": 2}, second_process=False
    )


def test_a_walk_branches_in_a_second_process(games: str) -> None:
    check_walk_in_second_process("jericho/zork1-r119", {"games_dir": games}, _policy)
