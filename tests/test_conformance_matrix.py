"""The conformance kit over environments of every installed adapter."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from llenvs.core.registry import CATALOGUE, environment_registry
from llenvs.testing import check_environment

SHARED = Path(__file__).parents[2] / "shared" / "data"
GAMES = Path(os.environ.get("LLENVS_JERICHO_GAMES") or SHARED / "jericho")
HOUSEHOLDS = Path(os.environ.get("ALFWORLD_DATA") or SHARED / "alfworld")
MODULES = Path(__file__).parents[1] / "packages" / "verifiers-v1" / "tests" / "modules"
SUMS = [{"problem": f"{i}+{i}", "answer": str(2 * i)} for i in range(1, 5)]


@dataclass(frozen=True)
class Case:
    """An environment, the upstream's module it needs, and the file without which it has nothing to play."""

    address: str
    options: dict[str, Any] = field(default_factory=dict)
    upstream: str | None = None
    data: Path | None = None


MATRIX = [
    Case(
        "alfworld/train",
        {"data_dir": str(HOUSEHOLDS), "task_types": [1, 2, 3], "max_live": 1},
        "textworld",
        HOUSEHOLDS / "json_2.1.1",
    ),
    Case("aviary/dummy", {"tasks": ["frogs", "kings"], "end_immediately": False}, "aviary"),
    Case("craftax/craftax-classic", {"size": 2, "max_steps": 20}, "craftax"),
    Case("gem/game:Game2048-v0-easy", {}, "gem"),
    Case("gem/math:GSM8K", {"dataset": SUMS}, "gem"),
    Case(
        "huggingface/dataset",
        {"data": SUMS, "question_column": "problem", "answer_column": "answer", "scoring": "numeric"},
        "datasets",
    ),
    Case("jericho/zork1-r119", {"games_dir": str(GAMES), "max_live": 2}, "jericho", GAMES / "zork1-r119.z3"),
    Case("reasoning_gym/leg_counting", {"size": 12}),
    Case("reasoning_gym/tower_of_hanoi", {"size": 6}),
    Case("reasoning_gym/word_ladder", {"size": 4}),
    Case("tau/mock", {"user_script": ["Hello", "Yes", "Fine"]}, "tau2"),
    Case(
        "verifiers/ReasoningGymEnv",
        {"args": {"gym": "leg_counting", "num_train_examples": 5, "num_eval_examples": 20, "seed": 42}},
        "verifiers.legacy",
    ),
    Case("verifiers_v1/v1_doubler", {}, "verifiers.v1", MODULES / "v1_doubler.py"),
]


def test_every_adapter_is_in_the_matrix() -> None:
    assert (
        {case.address.split("/")[0] for case in MATRIX} == set(CATALOGUE) >= set(environment_registry.adapters())
    )


@pytest.mark.parametrize("case", MATRIX, ids=[case.address for case in MATRIX])
def test_conformance(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = case.address.split("/")[0]
    if adapter not in environment_registry.adapters():
        pytest.skip(f"llenvs-{CATALOGUE[adapter]} is not installed here")
    if case.upstream is not None and not _can_import(case.upstream):
        pytest.skip(f"{case.upstream}, the upstream of {adapter}, is not installed here")
    if case.data is not None and not case.data.exists():
        pytest.skip(f"the data of {adapter} are not here: {case.data.name}")
    if adapter == "verifiers_v1":
        monkeypatch.syspath_prepend(str(MODULES))
    check_environment(case.address, options=case.options)


def _can_import(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False
