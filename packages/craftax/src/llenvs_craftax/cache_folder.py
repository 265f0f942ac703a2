"""Where compiled programs and textures are kept between processes."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "LLENVS_CRAFTAX_CACHE"
"""Environment variable with the folder; an empty value means that nothing is kept."""


def cache_folder(name: str) -> Path | None:
    """The folder called `name` for kept files, not made yet; None when nothing is to be kept."""
    given = os.environ.get(CACHE_VARIABLE)
    if given is not None:
        return Path(given).expanduser() / name if given else None
    from platformdirs import user_cache_path

    return user_cache_path("llenvs") / "craftax" / name
