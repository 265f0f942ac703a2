"""What a run was made with."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from typing import Any


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
    by_module = _distributions_by_module()
    names = {"llenvs-core"}
    for module in modules - {"builtins", "abc", "typing", "__main__"}:
        names.update(by_module.get(module, ()))
    found = {}
    for name in sorted(names):
        for each in (name, *_requirements(name)):
            try:
                found[each] = version(each)
            except PackageNotFoundError:
                continue
    return tuple(sorted(found.items()))


@functools.cache
def _distributions_by_module() -> Mapping[str, list[str]]:
    return packages_distributions()


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
