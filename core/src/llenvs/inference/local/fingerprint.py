"""Whether a model on disk is still the same, told without reading it."""

from __future__ import annotations

import os
from pathlib import Path


def fingerprint(model: str | os.PathLike[str]) -> tuple[tuple[str, int, int], ...]:
    """(name, bytes, time of the last change in nanoseconds) of a model's file, or of all files in its folder.

    What is not there (a name on a hub) has its name alone.
    """
    path = Path(model)
    if not path.exists():
        return ((str(model), 0, 0),)
    found = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return tuple(
        (each.name if each == path else each.relative_to(path).as_posix(), status.st_size, status.st_mtime_ns)
        for each in found
        for status in (each.stat(),)
    )
