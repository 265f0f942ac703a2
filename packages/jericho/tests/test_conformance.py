"""The promises of the contract, also in a second process from JSON alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from llenvs import Action, State
from llenvs.core.encoding import dumps
from llenvs.testing import check_environment
from llenvs.testing.second_process import replayed
from llenvs.testing.subject import Subject

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
    import llenvs

    address, options = "jericho/zork1-r119", {"games_dir": games}
    subject = Subject(lambda: llenvs.make(address, **options), _policy, address, options, max_steps=50)
    steps = random.Random(1).sample(subject.steps, 10)
    _, results = replayed(subject, steps)
    assert results == [dumps(step.result) for step in steps]
    subject.environment.close()
