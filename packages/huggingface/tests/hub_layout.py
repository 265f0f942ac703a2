"""Writes data sets as the hub's cache has them: refs, and a snapshot with a card and Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write_repository(cache: Path, repository: str, configs: dict[str, dict[str, list[dict[str, Any]]]]) -> Path:
    """`configs` is ``{config: {split: rows}}``; returns the snapshot's folder."""
    home = cache / f"datasets--{repository.replace('/', '--')}"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    snapshot = home / "snapshots" / COMMIT
    write_snapshot(snapshot, configs)
    return snapshot


def write_snapshot(folder: Path, configs: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    import pyarrow
    import pyarrow.parquet

    card = ["---", "configs:"]
    for config, splits in configs.items():
        card += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            (folder / config).mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(
                pyarrow.Table.from_pylist(rows), folder / config / f"{split}-00000-of-00001.parquet"
            )
            card += [f"  - split: {split}", f"    path: {config}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]))
