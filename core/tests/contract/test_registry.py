"""The registry: names, entry points, options, and what is said when something is missing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from llenvs.core import (
    Adapter,
    EnvironmentInfo,
    EnvironmentOptions,
    EnvironmentRegistry,
    EnvironmentSpec,
    Observation,
)
from llenvs.core import registry as registry_module
from llenvs.core.environment import Advance, Environment, EnvironmentOrigin, Start
from llenvs.core.errors import (
    AdapterNotInstalled,
    InvalidOption,
    UnknownAdapter,
    UnknownEnvironment,
    UnknownOption,
    UpstreamFailed,
)
from llenvs.core.options import parse_options


class Nested(BaseModel):
    model_config = {"extra": "forbid"}

    low: int = 0


class Options(EnvironmentOptions):
    size: int = Field(5, ge=1, description="How many tasks.")
    level: Nested = Nested()
    split: str = "train"


class Made(Environment[None]):
    def __init__(self, name: str, options: Options) -> None:
        super().__init__(EnvironmentSpec(name, "toy_box"))
        self.options = options

    @property
    def num_tasks(self) -> int:
        return self.options.size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(), None)

    def _advance(self, state: Any, action: Any) -> Advance:
        return Advance(Observation(), None, True)

    def _signals(self, state: Any, action: Any, next_state: Any) -> list[Any]:
        return []


class ToyBox(Adapter):
    name = "toy_box"
    options = Options

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [EnvironmentInfo("ball", self.name, "Throws."), EnvironmentInfo("top", self.name, "Spins.")]

    def create(self, name: str, options: Any) -> Environment[Any]:
        return Made(name, options)


class Attic(ToyBox):
    name = "attic"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        return [EnvironmentInfo("top", self.name)]


MODULE = """
from types import SimpleNamespace

from llenvs.core import Adapter, EnvironmentInfo

class Shed(Adapter):
    name = "shed"

    def list_environments(self):
        return [EnvironmentInfo("rake", "shed")]

    def create(self, name, options):
        return SimpleNamespace(made=name)

class CannotStart(Shed):
    def __init__(self):
        raise RuntimeError("no licence")

NO_ADAPTER = 5
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> EnvironmentRegistry:
    """A registry with one adapter, which sees no entry point of this installation."""
    monkeypatch.setattr(registry_module, "entry_points", lambda group: [])
    made = EnvironmentRegistry()
    made.register(ToyBox())
    return made


@pytest.fixture
def installed(
    registry: EnvironmentRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> EnvironmentRegistry:
    """The same with entry points into a module of its own, most of them broken."""
    (tmp_path / "kit_shed.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kit_shed", raising=False)
    points = {
        "shed": "kit_shed:Shed",
        "absent": "kit_no_such_module:A",
        "number": "kit_shed:NO_ADAPTER",
        "starts": "kit_shed:CannotStart",
    }
    found = [EntryPoint(name, value, registry_module.ENTRY_POINT_GROUP) for name, value in points.items()]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: found)
    return registry


def test_an_environment_by_every_address(registry: EnvironmentRegistry) -> None:
    for environment in (
        registry.get("toy_box/ball", size=3),
        registry.get("toy-box/ball", size=3),
        registry.get(name="ball", adapter="toy_box", size=3),
        registry.get(name="ball", adapter="toy-box", size=3),
        registry.get(name="toy_box/ball", adapter="toy_box", size=3),
        registry.get("ball", size=3),
    ):
        assert (environment.spec.id, len(environment)) == ("toy_box/ball", 3)


def test_an_adapter_registered_with_a_dash_is_found(registry: EnvironmentRegistry) -> None:
    class Dashed(ToyBox):
        name = "dash-ed"

    registry.register(Dashed())
    assert registry.adapter("dash_ed").name == "dash-ed"
    assert registry.adapter("dash-ed").name == "dash-ed"


def test_a_bare_name_of_several_adapters(registry: EnvironmentRegistry) -> None:
    registry.register(Attic())
    with pytest.raises(InvalidOption, match=r"several adapters have 'top'.*valid: attic, toy_box"):
        registry.get("top")
    assert registry.get("top", adapter="attic")


def test_an_adapter_given_for_an_environment(registry: EnvironmentRegistry) -> None:
    registry.register(Attic())
    with pytest.raises(
        UnknownEnvironment, match=r"it is an adapter; list its environments with: llenvs list attic"
    ):
        registry.get("attic")


def test_unknown_names(registry: EnvironmentRegistry) -> None:
    with pytest.raises(UnknownAdapter, match="unknown adapter 'toybox'; did you mean 'toy_box'") as caught:
        registry.get("toybox/ball")
    assert "toy_box" in caught.value.suggestions
    with pytest.raises(UnknownEnvironment, match="unknown environment 'bal'; did you mean 'ball'"):
        registry.get("toy_box/bal")
    with pytest.raises(UnknownEnvironment, match="did you mean 'toy_box/ball'"):
        registry.get("bal")
    with pytest.raises(
        UnknownOption, match=r"unknown option 'sise'; did you mean 'size'.*options of toy_box/ball"
    ):
        registry.get("toy_box/ball", sise=3)
    for wrong in ("", None, 5):
        with pytest.raises(InvalidOption, match="must be the name of an environment"):
            registry.get(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="must be an instance of"):
        registry.register(ToyBox)  # type: ignore[arg-type]


def test_option_errors_name_field_and_values(registry: EnvironmentRegistry) -> None:
    with pytest.raises(
        InvalidOption, match="toy_box/ball: size: input should be greater than or equal to 1, got 0"
    ):
        registry.get("toy_box/ball", size=0)
    with pytest.raises(InvalidOption, match=r"toy_box/ball: level\.low: .*valid integer.*got 'x'"):
        registry.get("toy_box/ball", level={"low": "x"})
    with pytest.raises(UnknownOption, match="unknown option 'lwo'; did you mean 'low'"):
        registry.get("toy_box/ball", level={"lwo": 1})
    assert parse_options(Options, {"size": 2}).size == 2


def test_descriptions(registry: EnvironmentRegistry) -> None:
    described = registry.describe("toy_box/ball")
    assert described.info.id == "toy_box/ball"
    options = {o.name: o for o in described.options}
    assert (options["size"].type, options["size"].default, options["size"].description) == (
        "int",
        "5",
        "How many tasks.",
    )
    assert [i.name for i in registry.list_environments("toy_box")] == ["ball", "top"]


def test_a_known_adapter_that_is_not_installed(
    registry: EnvironmentRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry_module.CATALOGUE, "far_away", "far-away")
    with pytest.raises(AdapterNotInstalled, match=r'run: pip install "llenvs\[far-away\]"'):
        registry.get("far-away/x")
    assert registry.installable()["far_away"] == 'pip install "llenvs[far-away]"'
    monkeypatch.setitem(registry_module.CATALOGUE, "toy_box", "toy-box")
    assert "toy_box" not in registry.installable()


def test_entry_points_are_imported_at_first_use(installed: EnvironmentRegistry) -> None:
    assert installed.adapters() == ["absent", "number", "shed", "starts", "toy_box"]
    assert "kit_shed" not in sys.modules
    assert installed.get("shed/rake").made == "rake"  # type: ignore[attr-defined]
    assert installed.get("shed:rake").origin == EnvironmentOrigin("shed/rake")
    assert "kit_shed" in sys.modules
    assert installed.adapter("shed") is installed.adapter("shed")


def test_broken_entry_points(installed: EnvironmentRegistry) -> None:
    with pytest.raises(
        UpstreamFailed, match="absent: the upstream failed while importing the adapter: ModuleNotFound"
    ):
        installed.get("absent/x")
    with pytest.raises(UpstreamFailed, match="kit_shed:NO_ADAPTER is no Adapter"):
        installed.get("number/x")
    with pytest.raises(UpstreamFailed, match="RuntimeError: no licence"):
        installed.get("starts/x")
    # one broken adapter does not hide the others, and is named when it may be why nothing was found
    assert installed.get("ball").spec.id == "toy_box/ball"
    with pytest.raises(UnknownEnvironment, match="could not be imported: absent, number, starts"):
        installed.get("bal")


def test_real_entry_points_of_this_installation() -> None:
    fresh = EnvironmentRegistry()
    for name in fresh.adapters():
        if name in registry_module.CATALOGUE:
            assert fresh.adapter(name).name == name
