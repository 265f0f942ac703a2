"""Which environment modules there are, found without importing any."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

BUILT_IN = {
    "ReasoningGymEnv": "tasks of reasoning-gym, e.g. args={gym: leg_counting, num_eval_examples: 100}",
    "TextArenaEnv": "a game of TextArena, e.g. args={game: Wordle-v0}; needs verifiers[ta] and nltk's words",
}
"""Environments of the upstream that need no module: the class is the name, `args` its arguments."""

_ENTRY = "def load_environment"
_LARGEST = 1 << 20  # bytes of source that are looked at


def is_path(name: str) -> bool:
    """Whether `name` is meant as the path of a module."""
    return name.endswith(".py")


def module_name(name: str) -> str:
    """The module of an environment id: ``owner/some-name`` is ``some_name``, as the upstream has it."""
    return name.rsplit("/", 1)[-1].replace("-", "_")


def installed_modules() -> list[str]:
    """Modules with a ``load_environment``: of the installed distributions that need Verifiers, and single files
    and packages that stand on the path otherwise (not in site-packages). Sorted; nothing is imported."""
    found = {name for each in distributions() if _needs_verifiers(each) for name in _modules_of(each)}
    for folder in map(Path, dict.fromkeys(sys.path)):
        if not {"site-packages", "dist-packages", "lib-dynload"} & set(folder.parts) and not _is_library(folder):
            found.update(neighbours(folder))
    return sorted(found)


def neighbours(folder: Path) -> list[str]:
    """Modules with a ``load_environment`` in `folder`, sorted."""
    try:
        paths = list(folder.iterdir()) if folder.is_dir() else []
    except OSError:  # an entry of the path that may not be read has no modules for us
        return []
    return sorted(path.stem for path in paths if path.stem.isidentifier() and _is_module(path))


def _needs_verifiers(distribution: Distribution) -> bool:
    names = (requirement.split(";")[0] for requirement in distribution.requires or ())
    return any(name.strip().startswith("verifiers") for name in names)


def _modules_of(distribution: Distribution) -> Iterator[str]:
    for file in distribution.files or ():
        top = len(file.parts) == 1 or (len(file.parts) == 2 and file.name == "__init__.py")
        if top and file.suffix == ".py" and _has_entry(Path(str(distribution.locate_file(file)))):
            yield file.stem if len(file.parts) == 1 else file.parts[0]


def _is_module(path: Path) -> bool:
    if path.suffix == ".py":
        return _has_entry(path)
    return path.suffix == "" and _has_entry(path / "__init__.py")


def _has_entry(source: Path) -> bool:
    try:
        if not source.is_file() or source.stat().st_size > _LARGEST:
            return False
        return _ENTRY in source.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _is_library(folder: Path) -> bool:
    """Whether `folder` is Python's own library (or a zip of it)."""
    return folder.suffix == ".zip" or (folder / "site-packages").is_dir()
