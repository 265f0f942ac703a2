"""Which environments of a run are isolated, and how: ``isolation: auto`` and ``container:`` in the YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from llenvs.container.config import ContainerConfig
from llenvs.container.create import container_options
from llenvs.core.errors import InvalidOption, UnknownAdapter
from llenvs.core.registry import CATALOGUE, EnvironmentRegistry, environment_registry

Isolation = Literal["none", "auto", "process", "venv"]
"""For a whole run. "none": all in this process. "auto": adapters that are installed here in this process, each
other one in a sandbox of its own. "process" and "venv": all in that runtime."""


def resolve_isolation(
    environments: Sequence[Mapping[str, Any]],
    isolation: Isolation = "none",
    *,
    registry: EnvironmentRegistry = environment_registry,
) -> list[ContainerConfig | None]:
    """How each of `environments` runs: a configuration, or None for in this process.

    Args:
        environments: mappings with ``name`` (or ``adapter/name``), ``adapter`` and, where an environment says for
            itself how it runs, ``container`` (a `ContainerConfig`, a mapping of its fields, or a runtime's name).
        isolation: for those that do not say it.

    Raises:
        InvalidOption: not a way to isolate, or an environment whose adapter would have to be found in a
            sandbox but is not named.
        UnknownAdapter: no such adapter, installed or known.
        UnknownOption: a field that `ContainerConfig` does not have.
    """
    if isolation not in get_args(Isolation):
        raise InvalidOption("isolation", isolation, "is no way to isolate", valid=", ".join(get_args(Isolation)))
    installed = set(registry.adapters())
    return [_resolve(environment, isolation, installed) for environment in environments]


def _resolve(
    environment: Mapping[str, Any], isolation: Isolation, installed: Iterable[str]
) -> ContainerConfig | None:
    given = environment.get("container")
    if given is not None:
        return container_options(given)
    if isolation == "none":
        return None
    if isolation != "auto":
        return ContainerConfig(runtime=isolation)
    adapter = _adapter(environment)
    if adapter is None or adapter in installed:
        return None  # without an adapter's name it is found among the installed ones, or nowhere
    if adapter not in CATALOGUE:
        raise UnknownAdapter(adapter, sorted({*installed, *CATALOGUE}), "list them with: llenvs list")
    return ContainerConfig(runtime="venv")


def _adapter(environment: Mapping[str, Any]) -> str | None:
    adapter, name = environment.get("adapter"), str(environment.get("name", ""))
    if adapter is None and "/" in name:
        adapter = name.partition("/")[0]
    return None if adapter is None else str(adapter).replace("-", "_")
