"""The conformance kit over environments of every installed adapter."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from llenvs.core.registry import CATALOGUE, environment_registry
from llenvs.testing import check_environment

GAMES = Path(os.environ.get("LLENVS_JERICHO_GAMES") or Path(__file__).parents[2] / "shared" / "data" / "jericho")
MATRIX: dict[str, dict[str, Any]] = {
    "jericho/zork1-r119": {"games_dir": str(GAMES), "max_live": 2},
    "reasoning_gym/leg_counting": {"size": 12},
    "reasoning_gym/tower_of_hanoi": {"size": 6},
    "reasoning_gym/word_ladder": {"size": 4},
}


def test_every_adapter_is_in_the_matrix() -> None:
    assert {address.split("/")[0] for address in MATRIX} == set(CATALOGUE) >= set(environment_registry.adapters())


@pytest.mark.parametrize("address", MATRIX)
def test_conformance(address: str) -> None:
    adapter = address.split("/")[0]
    if adapter not in environment_registry.adapters():
        pytest.skip(f"llenvs[{CATALOGUE[adapter]}] is not installed here")
    if adapter == "jericho" and find_spec("jericho") is None:
        pytest.skip("Jericho itself is not installed here")
    if adapter == "jericho" and not (GAMES / "zork1-r119.z3").is_file():
        pytest.skip("no story files here: name their folder with LLENVS_JERICHO_GAMES")
    check_environment(address, options=MATRIX[address])
