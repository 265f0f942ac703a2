"""Snapshots whose card says plainly which Parquet files make a split: read without `datasets`.

That is the form in which the hub has most data sets. Reading it directly saves the import of `datasets` and
pandas, which takes longer than everything else up to the first prompt.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

LARGEST = 64 << 20
"""Bytes of Parquet files that are read at once; larger splits are left to `datasets`, which maps them from
disk.
"""
_CARD = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)


class Plain(NamedTuple):
    """A split: its `pyarrow.Table`, and the names of its configuration and of itself."""

    table: Any
    subset: str
    split: str


def plain_table(folder: str, subset: str | None, split: str | None) -> Plain | None:
    """The split of a snapshot, or None where its card is not plain about it (then `datasets` finds out, or says
    why).

    Args:
        folder: the snapshot.
        subset: None for the only configuration, or the one that the card calls the default.
        split: None for "test" or the only one.
    """
    configs = _configs(os.path.join(folder, "README.md"))
    if subset is None:
        marked = [name for name, config in configs.items() if config.get("default")]
        names = list(configs) if len(configs) == 1 else marked
        subset = names[0] if len(names) == 1 else None
    if subset not in configs or set(configs[subset]) - {"config_name", "data_files", "default"}:
        return None
    patterns = _patterns(configs[subset]["data_files"])
    if split is None:
        split = "test" if "test" in patterns else next(iter(patterns)) if len(patterns) == 1 else None
    if split not in patterns:
        return None
    files = _matching(folder, patterns[split])
    if not files or not all(file.endswith(".parquet") for file in files):
        return None
    if sum(map(os.path.getsize, files)) > LARGEST:
        return None
    import pyarrow
    import pyarrow.parquet

    try:
        # not read_table, which imports pandas
        tables = [pyarrow.parquet.ParquetFile(file).read() for file in files]
        return Plain(pyarrow.concat_tables(tables), subset, split)
    except pyarrow.ArrowException:  # files that differ in their columns, or are broken
        return None


def _configs(card: str) -> dict[str, dict[str, Any]]:
    """The configurations in the head of a card, by name; none where it has none, or is damaged."""
    import yaml

    try:
        with open(card, encoding="utf-8") as file:
            head = _CARD.match(file.read())
        listed = (yaml.safe_load(head[1]) or {}).get("configs") if head else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError):
        return {}
    if not isinstance(listed, list) or not all(isinstance(config, Mapping) for config in listed):
        return {}
    return {str(config.get("config_name", "default")): dict(config) for config in listed if "data_files" in config}


def _patterns(data_files: Any) -> dict[str, list[str]]:
    """File patterns by split; none unless each says its split."""
    if not isinstance(data_files, list):
        return {}
    patterns: dict[str, list[str]] = {}
    for entry in data_files:
        if not isinstance(entry, Mapping) or set(entry) != {"split", "path"}:
            return {}
        paths = entry["path"] if isinstance(entry["path"], list) else [entry["path"]]
        patterns.setdefault(str(entry["split"]), []).extend(map(str, paths))
    return patterns


def _matching(folder: str, patterns: list[str]) -> list[str]:
    """The files that the patterns match, in the order of the patterns and then of their names."""
    found: list[str] = []
    for pattern in patterns:
        if "**" in pattern or ".." in pattern:
            return []
        inside = os.path.join(folder, os.path.dirname(pattern))
        names = sorted(os.listdir(inside)) if os.path.isdir(inside) else []
        matched = [os.path.join(inside, n) for n in names if fnmatch.fnmatchcase(n, os.path.basename(pattern))]
        found += [path for path in matched if path not in found]
    return found
