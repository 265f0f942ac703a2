"""What the flags of ``llenvs run`` change in a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownName
from llenvs.evaluation import EnvironmentConfig, EvaluationConfig

DEFAULT_RESULTS = Path("results")
"""Where a run is kept whose configuration has no `output_dir`: in a folder of this one, named after the file."""


class UnknownEnvironmentOfRun(UnknownName):
    """``--environment`` names nothing that the configuration has."""

    kind = "environment"


def choose_environments(config: EvaluationConfig | None, names: Sequence[str]) -> list[Any]:
    """The entries of `config` that `names` name, in the order of `names`.

    A name is an entry's label, name, or ``adapter/name``; an ``adapter/name`` that no entry has is added.

    Raises:
        UnknownEnvironmentOfRun: with the nearest names.
    """
    entries = [] if config is None else list(config.environments)
    chosen: list[Any] = []
    for name in names:
        found = [entry for entry in entries if name in _names_of(entry)]
        if not found and "/" not in name:
            known = sorted({each for entry in entries for each in _names_of(entry)})
            raise UnknownEnvironmentOfRun(name, known, "one that the configuration lacks is added as ADAPTER/NAME")
        added = [as_mapping(entry) for entry in found] or [{"name": name}]
        chosen += [entry for entry in added if entry not in chosen]
    return chosen


def limit_tasks(entries: Sequence[Any], limit: int, otherwise: int | None) -> list[Any]:
    """`entries`, each with at most `limit` of its tasks.

    Args:
        otherwise: how many tasks an entry has that does not say it; None for all.
    """
    limited: list[Any] = []
    for entry in entries:
        changed = dict(entry)
        if changed.get("task_indices") is not None:
            changed["task_indices"] = list(changed["task_indices"])[:limit]
        else:
            own = changed.get("num_tasks") or otherwise
            changed["num_tasks"] = limit if own is None else min(limit, own)
        limited.append(changed)
    return limited


def as_mapping(entry: EnvironmentConfig) -> dict[str, Any]:
    """An entry as it would stand in YAML."""
    return entry.model_dump(exclude_unset=True)


def refuse_small_limit(limit: int | None) -> None:
    """Raises InvalidOption when `limit` is under 1."""
    if limit is not None and limit < 1:
        raise InvalidOption("--limit", limit, "must be at least 1")


def default_output_dir(config_file: Path | None) -> Path:
    """Where the results go when nothing says it."""
    return DEFAULT_RESULTS / (config_file.stem if config_file is not None else "run")


def _names_of(entry: EnvironmentConfig) -> set[str]:
    names = {entry.name}
    if entry.label is not None:
        names.add(entry.label)
    if entry.adapter is not None:
        names.add(f"{entry.adapter}/{entry.name}")
    elif "/" in entry.name:
        names.add(entry.name.partition("/")[2])
    return names


def overrides_of(config: EvaluationConfig | None, *, limit: int | None, names: Sequence[str]) -> Mapping[str, Any]:
    """The overrides that ``--limit`` and ``--environment`` make."""
    refuse_small_limit(limit)
    overrides: dict[str, Any] = {}
    if names:
        overrides["environments"] = choose_environments(config, names)
    if limit is None:
        return overrides
    own = None if config is None else config.num_tasks
    entries = overrides.get("environments")
    if entries is None and config is not None:
        entries = [as_mapping(entry) for entry in config.environments]
    if entries is not None and any("num_tasks" in entry or "task_indices" in entry for entry in entries):
        overrides["environments"] = limit_tasks(entries, limit, own)
    else:
        overrides["num_tasks"] = limit if own is None else min(limit, own)
    return overrides
