"""Of which distributions, in which versions, an object is made."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, entry_points, version
from typing import Any


def made_of(objects: Iterable[object], groups: Iterable[str]) -> dict[str, Any]:
    """``python``, ``implementation``, ``platform`` and ``distributions``, name -> version: of those that the
    classes of `objects` come from, of what these require, and of LLEnvs.

    Args:
        objects: environments, backends.
        groups: of entry points, by which a module's distribution is known where its name does not tell.
    """
    modules = {cls.__module__.partition(".")[0] for each in objects for cls in type(each).__mro__}
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "distributions": dict(_distributions(frozenset(modules), tuple(groups))),
    }


@functools.cache  # what is installed does not change under a running process, and looking is slow
def _distributions(modules: frozenset[str], groups: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    # Adapters and backends are known by their entry points; a search through all that is installed takes a second.
    by_module = {
        point.value.partition(":")[0].partition(".")[0]: point.dist.name
        for group in groups
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
