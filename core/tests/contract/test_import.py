"""`import llenvs` costs little, and all its names are there."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import llenvs
import llenvs.core

HEAVY = ("torch", "datasets", "sympy", "matplotlib", "numpy", "httpx", "openai", "xllamacpp", "rich", "wandb")


@pytest.mark.parametrize(
    "statement", ["import llenvs", "import llenvs.core", "from llenvs import make, Trajectory"]
)
def test_nothing_heavy_is_imported(statement: str) -> None:
    code = f"{statement}; import sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_import_llenvs_brings_no_dependency_and_no_adapter() -> None:
    code = "import llenvs, sys; print(*{m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    brought = {m for m in done.stdout.split() if not m.startswith(("__editable__", "_editable", "_virtualenv"))}
    assert "llenvs" in brought
    assert not {"pydantic", "llenvs_reasoning_gym", "llenvs_openai", "llenvs_llamacpp"} & brought


def test_encoding_a_state_imports_no_numpy() -> None:
    code = (
        "from llenvs import State, Observation; import sys; "
        "s = State(Observation('x'), {'a': (1, b'x')}); assert State.from_json(s.to_json()) == s; "
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", llenvs.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(llenvs, name) is not None
    home = llenvs._HOME_OF.get(name)
    if home is not None:
        assert getattr(importlib.import_module(home), name) is getattr(llenvs, name)


def test_dir_and_unknown_names() -> None:
    assert dir(llenvs) == sorted(llenvs.__all__)
    assert set(llenvs._HOME_OF) | {"__version__"} == set(llenvs.__all__)
    with pytest.raises(AttributeError, match="module 'llenvs' has no attribute 'Stat'"):
        llenvs.Stat  # noqa: B018


@pytest.mark.parametrize("name", llenvs.core.__all__)
def test_every_name_of_core_is_there(name: str) -> None:
    assert hasattr(llenvs.core, name)
