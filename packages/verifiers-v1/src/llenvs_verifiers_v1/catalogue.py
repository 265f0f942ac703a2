"""Which tasksets there are, found without importing any."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

_LARGEST = 1 << 20  # bytes of source that are looked at
_EXPORTS = re.compile(r"^__all__\s*=", re.MULTILINE)
_USES = re.compile(r"verifiers\.v1")
_OWN = __name__.partition(".")[0]


def module_name(name: str) -> str:
    """The module of an id: ``owner/some-name@1.0`` is ``some_name``, as the upstream has it."""
    return name.rsplit("/", 1)[-1].split("@", 1)[0].replace("-", "_").lower()


def split_name(name: str) -> tuple[str, str]:
    """``env+taskset`` as (env, taskset); env is empty when the name has none."""
    env, plus, taskset = name.partition("+")
    return (env, taskset) if plus else ("", name)


def installed_tasksets() -> list[str]:
    """Modules that look like tasksets: of the installed distributions that need Verifiers, and single files and
    packages that stand on the path otherwise (not in site-packages). Sorted; nothing is imported."""
    found = {name for each in distributions() if _needs_verifiers(each) for name in _modules_of(each)}
    for folder in map(Path, dict.fromkeys(sys.path)):
        if not {"site-packages", "dist-packages", "lib-dynload"} & set(folder.parts) and not _is_library(folder):
            found.update(_in_folder(folder))
    return sorted(found - {_OWN})  # it exports something and uses v1, too


def _in_folder(folder: Path) -> list[str]:
    try:
        paths = list(folder.iterdir()) if folder.is_dir() else []
    except OSError:  # an entry of the path that may not be read has no modules for us
        return []
    return [path.stem for path in paths if path.stem.isidentifier() and _is_module(path)]


def _needs_verifiers(distribution: Distribution) -> bool:
    names = (requirement.split(";")[0] for requirement in distribution.requires or ())
    return any(name.strip().startswith("verifiers") for name in names)


def _modules_of(distribution: Distribution) -> Iterator[str]:
    for file in distribution.files or ():
        top = len(file.parts) == 1 or (len(file.parts) == 2 and file.name == "__init__.py")
        if top and file.suffix == ".py" and _is_taskset(Path(str(distribution.locate_file(file)))):
            yield file.stem if len(file.parts) == 1 else file.parts[0]


def _is_module(path: Path) -> bool:
    if path.suffix == ".py":
        return _is_taskset(path)
    return path.suffix == "" and _is_taskset(path / "__init__.py")


def _is_taskset(source: Path) -> bool:
    """Whether a module exports something and uses v1; a package may do the latter in any of its files."""
    try:
        if not source.is_file() or source.stat().st_size > _LARGEST:
            return False
        text = source.read_text(encoding="utf-8", errors="replace")
        if not _EXPORTS.search(text):
            return False
        if source.name != "__init__.py" or _USES.search(text):
            return _USES.search(text) is not None
        return any(
            _USES.search(path.read_text(encoding="utf-8", errors="replace")) for path in source.parent.glob("*.py")
        )
    except OSError:
        return False


def _is_library(folder: Path) -> bool:
    """Whether `folder` is Python's own library (or a zip of it)."""
    return folder.suffix == ".zip" or (folder / "site-packages").is_dir()
