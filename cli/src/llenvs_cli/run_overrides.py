"""What the flags of ``llenvs run`` change in a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownName
from llenvs.evaluation import ConfigError, EnvironmentConfig, EvaluationConfig

DEFAULT_RESULTS = Path("results")
"""Where a run is kept whose configuration has no `output_dir`: in a folder of this one, named after the file."""

_ENVIRONMENT_FIELD = re.compile(r"environments\[(\d+)\]\.?(.*)")


class UnknownEnvironmentOfRun(UnknownName):
    """``--environment`` names nothing that the configuration has."""

    kind = "environment"


@dataclass(frozen=True)
class Overrides:
    """Fields to set in a configuration, and where the environments among them stand in the file.

    Attributes:
        fields: dotted field -> value, for `llenvs.evaluation.load_config`.
        written: the configuration before these changes; None without a file.
        origins: for each environment in `fields`, its position in `written`; None for one that was added.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    written: EvaluationConfig | None = None
    origins: tuple[int | None, ...] = ()

    @contextmanager
    def locating_errors(self) -> Iterator[None]:
        """Errors of environments that were chosen from the file name their line in it."""
        try:
            yield
        except ConfigError as error:
            match = _ENVIRONMENT_FIELD.fullmatch(error.field)
            if match is None or error.line is not None or self.written is None:
                raise
            number = int(match[1])
            origin = self.origins[number] if number < len(self.origins) else None
            if origin is None:
                raise
            inner = tuple(part for part in match[2].split(".") if part)
            raise self.written.error(("environments", origin, *inner), error.problem) from None


def overrides_of(written: EvaluationConfig | None, *, limit: int | None, names: Sequence[str]) -> Overrides:
    """What ``--limit`` and ``--environment`` change in the configuration `written`.

    Raises:
        InvalidOption: `limit` is under 1.
        UnknownEnvironmentOfRun: one of `names` is in no entry, with the nearest names.
    """
    if limit is not None and limit < 1:
        raise InvalidOption("--limit", limit, "must be at least 1")
    entries = () if written is None else written.environments
    origins = _choose(entries, names) if names else tuple(range(len(entries)))
    added = iter([name for name in dict.fromkeys(names) if not any(name in _names_of(entry) for entry in entries)])
    chosen = [{"name": next(added)} if i is None else entries[i].model_dump(exclude_unset=True) for i in origins]
    fields: dict[str, Any] = {"environments": chosen} if names else {}
    if limit is not None:
        otherwise = None if written is None else written.num_tasks
        if any("num_tasks" in entry or "task_indices" in entry for entry in chosen):
            fields["environments"] = [_limited(entry, limit, otherwise) for entry in chosen]
        else:
            fields["num_tasks"] = limit if otherwise is None else min(limit, otherwise)
    return Overrides(fields, written, origins if "environments" in fields else ())


def default_output_dir(config_file: Path | None) -> Path:
    """Where the results go when nothing says it."""
    return DEFAULT_RESULTS / (config_file.stem if config_file is not None else "run")


def _choose(entries: Sequence[EnvironmentConfig], names: Sequence[str]) -> tuple[int | None, ...]:
    """Positions of the entries that `names` name, in the order of `names`; None for an ``adapter/name`` to add."""
    chosen: list[int | None] = []
    for name in dict.fromkeys(names):
        found = [i for i, entry in enumerate(entries) if name in _names_of(entry)]
        if not found and "/" not in name:
            known = sorted({each for entry in entries for each in _names_of(entry)})
            raise UnknownEnvironmentOfRun(name, known, "one that the configuration lacks is added as ADAPTER/NAME")
        chosen += [i for i in found if i not in chosen] if found else [None]
    return tuple(chosen)


def _names_of(entry: EnvironmentConfig) -> set[str]:
    """What an entry may be called by: its label, its name, ``adapter/name``."""
    names = {entry.name}
    if entry.label is not None:
        names.add(entry.label)
    if entry.adapter is not None:
        names.add(f"{entry.adapter}/{entry.name}")
    elif "/" in entry.name:
        names.add(entry.name.partition("/")[2])
    return names


def _limited(entry: dict[str, Any], limit: int, otherwise: int | None) -> dict[str, Any]:
    """`entry` with at most `limit` of its tasks; one that does not say how many has `otherwise` (None: all)."""
    if entry.get("task_indices") is not None:
        return {**entry, "task_indices": list(entry["task_indices"])[:limit]}
    own = entry.get("num_tasks") or otherwise
    return {**entry, "num_tasks": limit if own is None else min(limit, own)}
