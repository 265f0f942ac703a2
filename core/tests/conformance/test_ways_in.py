"""The kit by address, in a second process, as a test class, and without pytest."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict

from llenvs.core import Adapter, EnvironmentInfo, EnvironmentOptions, EnvironmentSpec, Observation, Signal
from llenvs.core.environment import Advance, Environment, Start
from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.core.registry import environment_registry
from llenvs.testing import EnvironmentConformance, check_environment

MODULE = """
from llenvs import Environment, EnvironmentSpec, Observation, Signal
from llenvs.core.environment import Advance, Start


class Sums(Environment):
    num_tasks = 9

    def __init__(self, order_of_a_set=False):
        super().__init__(EnvironmentSpec("sums", "kit"))
        self.order_of_a_set = order_of_a_set

    def _start(self, task_index, seed, options):
        names = {"ann", "bob", "cy", "dee", "eve", "flo", "gus", "hal", "ida", "jo", "kim", "lou"}
        names = list(names) if self.order_of_a_set else sorted(names)
        prompt = f"{names} have {task_index} and 2. Together?"
        return Start(Observation(prompt), {"sum": task_index + 2})

    def _advance(self, state, action):
        return Advance(Observation(), state.hidden, terminated=True)

    def _signals(self, state, action, next_state):
        return [Signal("score", reward=float(action.text == str(state.hidden["sum"])))]


def good():
    return Sums()


def depends_on_the_hash_seed():
    return Sums(order_of_a_set=True)


def cannot_be_made_elsewhere():
    import os
    if "llenvs.testing.second_process" in " ".join(open("/proc/self/cmdline").read().split(chr(0))):
        raise RuntimeError("no second licence")
    return Sums()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "kit_sums.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    yield importlib.import_module("kit_sums")
    del sys.modules["kit_sums"]


def test_an_importable_factory_is_checked_in_a_second_process(module: Any) -> None:
    report = check_environment(module.good)
    assert "second_process" in report.passed
    assert "success" in report.skipped  # none is declared
    report = check_environment(module.good, second_process=False)
    assert report.skipped["second_process"] == "switched off"


def test_dependence_on_the_hash_seed_is_found(module: Any) -> None:
    report = check_environment(module.depends_on_the_hash_seed, raise_on_violation=False)
    assert report.failed == ("second_process",), str(report)
    assert "begins differently in a second process, observation.prompt" in report.violations[0]


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads its own command line")
def test_a_second_process_that_dies_is_said(module: Any) -> None:
    report = check_environment(module.cannot_be_made_elsewhere, raise_on_violation=False)
    assert report.failed == ("second_process",)
    assert "no second licence" in report.violations[0]


class CountOptions(EnvironmentOptions):
    size: int = 5


class Count(Environment[Any]):
    def __init__(self, size: int) -> None:
        super().__init__(EnvironmentSpec("count", "kit_counting", success_signal="score"))
        self._size = size

    @property
    def num_tasks(self) -> int:
        return self._size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation("x " * task_index), {"answer": task_index})

    def _advance(self, state: Any, action: Any) -> Advance:
        return Advance(Observation(), state.hidden, terminated=True)

    def _signals(self, state: Any, action: Any, next_state: Any) -> list[Signal]:
        return [Signal("score", reward=float(action.text == str(state.hidden["answer"])))]


class Counting(Adapter):
    name = "kit_counting"
    options = CountOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [EnvironmentInfo("count", "kit_counting")]

    def create(self, name: str, options: Any) -> Environment[Any]:
        return Count(options.size)


class Careless(Counting):
    """Takes what it does not know."""

    name = "kit_careless"

    class AnyOptions(CountOptions):
        model_config = ConfigDict(extra="ignore")

    options = AnyOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [EnvironmentInfo("count", "kit_careless")]


environment_registry.register(Counting())
environment_registry.register(Careless())


def test_by_address() -> None:
    report = check_environment("kit_counting/count", options={"size": 4})
    assert "unknown_options" in report.passed
    assert report.environment == "kit_counting/count"
    assert set(report.skipped) == {"second_process"}  # the adapter is registered in this process alone


def test_an_adapter_that_takes_any_option_is_found() -> None:
    report = check_environment("kit_careless/count", raise_on_violation=False)
    assert report.failed == ("spec", "unknown_options")
    assert "unknown_options: the unknown option 'sizex' was accepted" in report.violations
    assert "spec.id is 'kit_counting/count'" in report.violations[0]


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(InvalidOption, match="environment: must be an address or a function"):
        check_environment(Count(3))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="seeds: must be at least two"):
        check_environment("kit_counting/count", seeds=(1, 1))
    with pytest.raises(InvalidOption, match="tasks: must be at least 1, got 0"):
        check_environment("kit_counting/count", tasks=0)
    with pytest.raises(InvalidOption, match="options: go with an address"):
        check_environment(lambda: Count(3), options={"size": 3})
    report = check_environment("kit_counting/count", options={"sise": 3}, raise_on_violation=False)
    assert report.failed == ("create",)
    assert UnknownOption.__name__ in report.violations[0]


class TestByFunction(EnvironmentConformance):
    make = staticmethod(lambda: Count(6))


class TestByAddress(EnvironmentConformance):
    environment = "kit_counting/count"
    options = {"size": 3}  # noqa: RUF012
    tasks = 2


def test_the_test_class_fails_where_the_environment_does(tmp_path: Path) -> None:
    (tmp_path / "kit_sums.py").write_text(MODULE)
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import kit_sums
            from llenvs import Action
            from llenvs.testing import EnvironmentConformance

            class TestGood(EnvironmentConformance):
                make = staticmethod(kit_sums.good)

            class Text(kit_sums.Sums):
                def step(self, state, action):
                    return super().step(state, Action(action) if isinstance(action, str) else action)

            class TestBroken(EnvironmentConformance):
                make = Text
            """
        )
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rf", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "step with a str for an Action must raise InvalidAction, but was accepted" in done.stdout
    assert "TestBroken::test_wrong_arguments" in done.stdout
    assert "1 failed" in done.stdout, done.stdout
    assert done.stdout.count("FAILED") == 1


def test_the_kit_needs_no_pytest_and_nothing_imports_the_kit() -> None:
    code = textwrap.dedent(
        """
        import sys
        import llenvs.core, llenvs.inference, llenvs.evaluation
        assert not [m for m in sys.modules if m.startswith("llenvs.testing")]
        import llenvs.testing
        assert "pytest" not in sys.modules and "_pytest" not in sys.modules
        """
    )
    subprocess.run([sys.executable, "-c", code], check=True)
