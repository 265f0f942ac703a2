"""What a run was made with."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, entry_points, version
from typing import Any

from llenvs.core.registry import ENTRY_POINT_GROUP as ADAPTERS
from llenvs.inference.backends import ENTRY_POINT_GROUP as BACKENDS


def run_versions(objects: Iterable[object]) -> dict[str, Any]:
    """Time, Python, platform, and the versions of the distributions that the classes of `objects` come from,
    of what these require, and of LLEnvs."""
    modules = {cls.__module__.partition(".")[0] for each in objects for cls in type(each).__mro__}
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "distributions": dict(_distributions(frozenset(modules))),
    }


@functools.cache  # what is installed does not change under a running process, and looking is slow
def _distributions(modules: frozenset[str]) -> tuple[tuple[str, str], ...]:
    # Adapters and backends are known by their entry points; a search through all that is installed takes a second.
    by_module = {
        point.value.partition(":")[0].partition(".")[0]: point.dist.name
        for group in (ADAPTERS, BACKENDS)
        for point in entry_points(group=group)
        if point.dist is not None
    }
    names = {"llenvs-core", *(by_module.get(module, module.replace("_", "-")) for module in modules)}
    found = {}
    for name in sorted(names):
        for each in (name, *_requirements(name)):
            try:
                found[each] = version(each)
            except PackageNotFoundError:
                continue
    return tuple(sorted(found.items()))


def _requirements(name: str) -> list[str]:
    """Names of the distributions that `name` requires, extras left out."""
    try:
        required = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    names = []
    for requirement in required:
        text, _, marker = requirement.partition(";")
        if "extra" in marker:
            continue
        end = next((i for i, c in enumerate(text) if not (c.isalnum() or c in "-_.")), len(text))
        names.append(text[:end].lower().replace("_", "-"))
    return names
