"""The registry: finds adapters by entry point and builds environments by name."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentDescription, EnvironmentInfo
from llenvs.core.environment import Environment, EnvironmentOrigin
from llenvs.core.errors import (
    AdapterNotInstalled,
    InvalidOption,
    LLEnvsError,
    UnknownAdapter,
    UnknownEnvironment,
    UpstreamFailed,
)
from llenvs.core.options import parse_options

ENTRY_POINT_GROUP = "llenvs.adapters"

CATALOGUE: dict[str, str] = {
    "alfworld": "alfworld",
    "aviary": "aviary",
    "craftax": "craftax",
    "gem": "gem",
    "huggingface": "huggingface",
    "jericho": "jericho",
    "reasoning_gym": "reasoning-gym",
    "tau": "tau",
    "verifiers": "verifiers",
    "verifiers_v1": "verifiers-v1",
}
"""Adapters of this project: name -> extra of the distribution ``llenvs`` that installs it (for those in
`llenvs.core.errors.STANDALONE`: the distribution ``llenvs-<value>`` by itself)."""


class EnvironmentRegistry:
    """Adapters by name, installed ones and those registered in this process.

    An adapter's module is imported when it is first asked for. Safe under threads.
    """

    def __init__(self) -> None:
        self._registered: dict[str, Adapter] = {}
        self._loaded: dict[str, Adapter] = {}
        self._lock = threading.RLock()

    def register(self, adapter: Adapter) -> None:
        """Make `adapter` known in this process (for environments that live in a script or a test)."""
        if not isinstance(adapter, Adapter):
            raise InvalidOption("adapter", adapter, "must be an instance of llenvs.core.adapter.Adapter")
        with self._lock:
            self._registered[_folded(adapter.name)] = adapter

    def adapters(self) -> list[str]:
        """Names of the adapters that can be used here, sorted."""
        return sorted({*self._entry_points(), *self._registered})

    def installable(self) -> dict[str, str]:
        """Adapters of this project that are not installed here: name -> install command."""
        here = set(self.adapters())
        return {
            name: AdapterNotInstalled(name, extra).command for name, extra in CATALOGUE.items() if name not in here
        }

    def adapter(self, name: str) -> Adapter:
        """The adapter `name`, imported now if need be. ``-`` and ``_`` are the same in names.

        Raises:
            UnknownAdapter, AdapterNotInstalled: with the nearest names or the install command.
            UpstreamFailed: its module could not be imported.
        """
        name = _folded(str(name))
        with self._lock:
            if name in self._registered:
                return self._registered[name]
            if name in self._loaded:
                return self._loaded[name]
            points = self._entry_points()
            if name not in points:
                if name in CATALOGUE:
                    raise AdapterNotInstalled(f"adapter {name!r}", CATALOGUE[name])
                raise UnknownAdapter(name, sorted({*self.adapters(), *CATALOGUE}), "list them with: llenvs list")
            try:
                loaded = points[name].load()
                adapter = loaded() if isinstance(loaded, type) else loaded
            except LLEnvsError:
                raise
            except Exception as error:  # an adapter of someone else may fail in any way
                raise UpstreamFailed(name, "importing the adapter", error) from error
            if not isinstance(adapter, Adapter):
                raise UpstreamFailed(name, "importing the adapter", f"{points[name].value} is no Adapter")
            self._loaded[name] = adapter
            return adapter

    def list_environments(self, adapter: str | None = None) -> Sequence[EnvironmentInfo]:
        """Environments of one adapter, or of all that are installed."""
        names = self.adapters() if adapter is None else [adapter]
        return [info for name in names for info in self.adapter(name).list_environments()]

    def describe(self, name: str, adapter: str | None = None) -> EnvironmentDescription:
        """Options with types, defaults and docs of an environment."""
        found, name = self._find(name, adapter)
        return found.describe(name)

    def get(
        self, name: str, adapter: str | None = None, *, container: Any = None, **options: Any
    ) -> Environment[Any]:
        """Build an environment.

        Args:
            name: the environment's name, or ``adapter/name``.
            adapter: may be left out when `name` holds it, or when one installed adapter alone has the name.
            container: behind a server instead of in this process: a `ContainerConfig`, a mapping of its fields, or
                the name of a runtime ("process", "venv", ...).
            options: of the environment; see ``llenvs info adapter/name``.

        Raises:
            UnknownAdapter: no such adapter.
            AdapterNotInstalled: with the install command.
            UnknownEnvironment: with the nearest names.
            UnknownOption: with the nearest names.
            InvalidOption: with the field and what is valid.
        """
        if container is not None:
            from llenvs.container.create import create_container_environment

            made: Environment[Any] = create_container_environment(
                {"name": name, "adapter": adapter, **options}, container
            )
            made.origin = EnvironmentOrigin(made.spec.id, options, container)
            return made
        found, name = self._find(name, adapter)
        info = found.info(name)
        parsed = parse_options(found.options_for(name), options, info.id)
        made = found.create(name, parsed)
        made.origin = EnvironmentOrigin(info.id, options)
        return made

    def _find(self, name: str, adapter: str | None) -> tuple[Adapter, str]:
        if not isinstance(name, str) or not name:
            raise InvalidOption("name", name, "must be the name of an environment")
        if adapter is not None:
            found = self.adapter(adapter)
            prefix = f"{found.name}/"
            return found, name.removeprefix(prefix)
        if "/" in name:
            adapter, _, rest = name.partition("/")
            return self.adapter(adapter), rest
        before, colon, rest = name.partition(":")
        if colon and _folded(before) in {*self.adapters(), *CATALOGUE}:  # "alfworld:train", as papers write it
            return self.adapter(before), rest
        if _folded(name) in self.adapters():
            raise UnknownEnvironment(name, (), f"it is an adapter; list its environments with: llenvs list {name}")
        everywhere, broken = self._listed()
        having = [info.adapter for info in everywhere if info.name == name]
        if len(having) == 1:
            return self.adapter(having[0]), name
        if having:
            raise InvalidOption(
                "adapter",
                None,
                f"several adapters have {name!r}, so it must be given",
                valid=", ".join(having),
            )
        hint = "give adapter=..., list adapters with: llenvs list"
        if broken:
            hint += f"; not searched, since they could not be imported: {', '.join(broken)}"
        raise UnknownEnvironment(name, [info.id for info in everywhere], hint)

    def _listed(self) -> tuple[list[EnvironmentInfo], list[str]]:
        """Environments of all adapters that can be imported, and the names of those that cannot."""
        everywhere: list[EnvironmentInfo] = []
        broken = []
        for name in self.adapters():
            try:
                everywhere += self.adapter(name).list_environments()
            except UpstreamFailed:
                broken.append(name)
        return everywhere, broken

    @staticmethod
    def _entry_points() -> dict[str, EntryPoint]:
        return {_folded(point.name): point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _folded(name: str) -> str:
    return name.replace("-", "_")


environment_registry = EnvironmentRegistry()
"""The registry of this process."""


def make(id: str, **options: Any) -> Environment[Any]:
    """Build an environment by its address: ``llenvs.make("reasoning_gym/leg_counting", size=100)``.

    Raises: see `EnvironmentRegistry.get`.
    """
    return environment_registry.get(id, **options)
