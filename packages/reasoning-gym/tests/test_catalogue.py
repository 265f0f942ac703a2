import subprocess
import sys

import pytest

from llenvs.core.errors import UnknownEnvironment
from llenvs_reasoning_gym import ADAPTER
from llenvs_reasoning_gym.catalogue import (
    CATEGORY,
    ISOLATED,
    UPSTREAM_RELEASE,
    WITHOUT_CURRICULUM,
    names,
)
from llenvs_reasoning_gym.guard import EXECUTING
from llenvs_reasoning_gym.upstream import library, version


def test_the_static_table_is_the_upstreams_registry() -> None:
    datasets = library().factory.DATASETS
    assert set(names()) == set(datasets)
    assert len(CATEGORY) == 105
    assert {name: datasets[name][0].__module__.split(".")[1] for name in CATEGORY} == CATEGORY
    assert set(datasets) - set(library().factory.CURRICULA) == WITHOUT_CURRICULUM
    assert version() == UPSTREAM_RELEASE
    assert set(ISOLATED) >= EXECUTING


def test_list_has_every_environment_once_with_its_category() -> None:
    entries = ADAPTER.list_environments()
    assert len(entries) == len({entry.name for entry in entries}) == 106
    assert ADAPTER.info("leg_counting").category == "arithmetic"
    assert ADAPTER.info("composite").category == "composite"
    assert all(entry.description for entry in entries)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UnknownEnvironment, match="leg_counting"):
        ADAPTER.info("leg_countin")


def test_listing_imports_nothing_of_the_upstream() -> None:
    code = (
        "import sys, llenvs_reasoning_gym; llenvs_reasoning_gym.ADAPTER.list_environments();"
        "print([m for m in ('reasoning_gym', 'sympy', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
