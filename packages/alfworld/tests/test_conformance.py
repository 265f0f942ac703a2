"""The promises of the contract, also in a second process from JSON alone and behind a server."""

from __future__ import annotations

import pytest
from alfworld_play import wander

import llenvs
from llenvs.testing import check_environment
from llenvs.testing.walks import check_walk, check_walk_in_second_process


@pytest.mark.parametrize("name", ["train", "eval_in_distribution", "eval_out_of_distribution"])
def test_conformance(data_dir: str, name: str) -> None:
    # the small games of the six types, which load in a tenth of a second
    options = {"data_dir": data_dir, "task_types": [1, 2, 3], "max_live": 1}
    report = check_environment(f"alfworld/{name}", options=options, actions=wander, second_process=name == "train")
    assert not {"threads", "odd_actions"} & set(report.skipped), str(report)


def test_walks_branch_anywhere(data_dir: str) -> None:
    with llenvs.make("alfworld/train", data_dir=data_dir, max_live=2) as env:
        check_walk(env, wander)


def test_walks_branch_anywhere_in_a_second_process(data_dir: str) -> None:
    check_walk_in_second_process("alfworld/train", {"data_dir": data_dir, "max_live": 1}, wander)


def test_walks_branch_anywhere_through_the_process_runtime(data_dir: str) -> None:
    pytest.importorskip("llenvs_container")
    options = {"data_dir": data_dir, "task_types": [1, 2, 3], "max_live": 1}
    with (
        llenvs.make("alfworld/train", **options) as here,
        llenvs.make("alfworld/train", **options, container="process") as there,
    ):
        check_walk(here, wander, through=there)
