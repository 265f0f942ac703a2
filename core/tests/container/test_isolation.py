"""Which environments of a run are isolated."""

from typing import Any

import pytest

from llenvs.container import ContainerConfig
from llenvs.container.isolation import resolve_isolation
from llenvs.core import Adapter, Environment, EnvironmentInfo
from llenvs.core.errors import InvalidOption, UnknownAdapter, UnknownOption
from llenvs.core.registry import CATALOGUE, EnvironmentRegistry


class Here(Adapter):
    name = "here"

    def list_environments(self) -> list[EnvironmentInfo]:
        return [EnvironmentInfo("one", "here")]

    def create(self, name: str, options: Any) -> Environment[Any]:
        raise NotImplementedError


class Registry(EnvironmentRegistry):
    """Has one adapter, whatever else is installed."""

    @staticmethod
    def _entry_points():
        return {}


@pytest.fixture
def registry() -> EnvironmentRegistry:
    registry = Registry()
    registry.register(Here())
    return registry


ELSEWHERE = next(iter(CATALOGUE))
VENV = ContainerConfig(runtime="venv")


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"name": "here/one"}, None),
        ({"name": "one", "adapter": "here"}, None),
        ({"name": "one"}, None),
        ({"name": f"{ELSEWHERE}/one"}, VENV),
        ({"name": "one", "adapter": ELSEWHERE.replace("_", "-")}, VENV),
        ({"name": "here/one", "container": "process"}, ContainerConfig()),
        (
            {"name": f"{ELSEWHERE}/one", "container": {"runtime": "venv", "packages": ["x==1"]}},
            ContainerConfig(runtime="venv", packages=("x==1",)),
        ),
    ],
)
def test_auto_isolates_what_is_not_installed_here(registry, environment, found):
    assert resolve_isolation([environment], "auto", registry=registry) == [found]


def test_none_isolates_only_what_says_so_itself(registry):
    environments = [{"name": f"{ELSEWHERE}/one"}, {"name": "here/one", "container": {"runtime": "venv"}}]
    assert resolve_isolation(environments, registry=registry) == [None, VENV]


@pytest.mark.parametrize("runtime", ["process", "venv"])
def test_a_runtime_is_for_all_that_do_not_say_it(registry, runtime):
    environments = [{"name": "here/one"}, {"name": "here/one", "container": "venv"}]
    assert resolve_isolation(environments, runtime, registry=registry) == [ContainerConfig(runtime=runtime), VENV]


def test_errors_name_the_valid_values(registry):
    with pytest.raises(InvalidOption, match="isolation: is no way to isolate, got 'docker'; valid: none, auto"):
        resolve_isolation([{"name": "here/one"}], "docker", registry=registry)
    with pytest.raises(UnknownAdapter, match="did you mean 'here'"):
        resolve_isolation([{"name": "hree/one"}], "auto", registry=registry)
    with pytest.raises(UnknownOption, match="did you mean 'runtime'"):
        resolve_isolation([{"name": "here/one", "container": {"runtim": "venv"}}], "auto", registry=registry)
