"""The promises of the contract, also in a second process from JSON alone and behind a server."""

from __future__ import annotations

import pytest
from alfworld_play import wander

import llenvs
from llenvs.testing import check_environment
from llenvs.testing.walks import check_walk, check_walk_in_second_process

# the types whose games are small and load in a tenth of a second
SMALL = [1, 2, 3]


def test_conformance(data_dir: str) -> None:
    options = {"data_dir": data_dir, "task_types": SMALL, "max_live": 1}
    report = check_environment("alfworld/train", options=options, actions=wander)
    assert not {"second_process", "threads", "odd_actions"} & set(report.skipped), str(report)


def test_conformance_of_a_game_file(legacy_game: str) -> None:
    options = {"max_live": 1, "state": "commands", "include_admissible_commands": True}
    check_environment(f"alfworld/{legacy_game}", options=options, actions=wander, second_process=False)


def test_walks_branch_anywhere(data_dir: str) -> None:
    with llenvs.make("alfworld/train", data_dir=data_dir, max_live=2) as env:
        check_walk(env, wander)


def test_walks_branch_anywhere_in_a_second_process(data_dir: str) -> None:
    options = {"data_dir": data_dir, "task_types": SMALL, "max_live": 1}
    check_walk_in_second_process("alfworld/train", options, wander)


def test_walks_branch_anywhere_through_the_process_runtime(data_dir: str) -> None:
    pytest.importorskip("llenvs_container")
    options = {"data_dir": data_dir, "task_types": SMALL, "max_live": 1}
    with (
        llenvs.make("alfworld/train", **options) as here,
        llenvs.make("alfworld/train", **options, container="process") as there,
    ):
        check_walk(here, wander, through=there)
