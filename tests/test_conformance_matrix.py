"""The conformance kit over environments of every installed adapter."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs.core.registry import CATALOGUE, environment_registry
from llenvs.testing import check_environment

MATRIX: dict[str, dict[str, Any]] = {
    "reasoning_gym/leg_counting": {"size": 12},
    "reasoning_gym/tower_of_hanoi": {"size": 6},
    "reasoning_gym/word_ladder": {"size": 4},
}


def test_every_adapter_is_in_the_matrix() -> None:
    assert {address.split("/")[0] for address in MATRIX} == set(CATALOGUE) == set(environment_registry.adapters())


@pytest.mark.parametrize("address", MATRIX)
def test_conformance(address: str) -> None:
    check_environment(address, options=MATRIX[address])
