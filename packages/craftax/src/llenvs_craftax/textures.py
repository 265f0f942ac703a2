"""The upstream's textures, read for one tile size alone and kept in our own folder.

The upstream makes three sizes at once, which takes minutes, says so on standard output, and pickles them into its
own installation. Its function for one size is called here instead; the result is the same.
"""

from __future__ import annotations

import os
import tempfile
import threading
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from llenvs_craftax.cache_folder import cache_folder
from llenvs_craftax.upstream import Upstream, settings

_lock = threading.Lock()


def pixel_renderer(upstream: Upstream, tile_size: int) -> Callable[[Any], Any]:
    """The upstream's function from a state (its tree) to pixels: float32 from 0 to 255, height x width x 3."""
    with settings(), _lock:
        import jax.numpy as jnp

        textures = {name: _on_device(jnp, value) for name, value in _textures(upstream, tile_size).items()}
        loader = upstream.renderer.load_all_textures
        upstream.renderer.load_all_textures = lambda: {tile_size: textures}
        try:
            renderer: Callable[[Any], Any] = upstream.renderer.make_craftax_pixel_renderer(tile_size)
        finally:
            upstream.renderer.load_all_textures = loader
        return renderer


def _on_device(jnp: Any, value: Any) -> Any:
    return [jnp.asarray(each) for each in value] if isinstance(value, list) else jnp.asarray(value)


def _textures(upstream: Upstream, tile_size: int) -> dict[str, Any]:
    folder = cache_folder("textures")
    if folder is None:
        return _made(upstream, tile_size)
    path = folder / f"{upstream.variant}-{version('craftax')}-{tile_size}.npz"
    kept = _read(path)
    if kept is None:
        kept = _made(upstream, tile_size)
        _write(path, kept)
    return kept


def _made(upstream: Upstream, tile_size: int) -> dict[str, Any]:
    import jax

    made: dict[str, Any] = jax.device_get(upstream.constants.load_all_textures_given_size(tile_size))
    return made


def _read(path: Path) -> dict[str, Any] | None:
    """What `_write` wrote; None when there is nothing, or nothing that can be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    made: dict[str, Any] = {}
    lists: dict[str, list[tuple[int, Any]]] = {}
    for name, array in arrays.items():
        base, mark, place = name.partition("@")
        if mark:
            lists.setdefault(base, []).append((int(place), array))
        else:
            made[name] = array
    for name, parts in lists.items():
        made[name] = [array for _, array in sorted(parts, key=lambda part: part[0])]
    return made


def _write(path: Path, textures: dict[str, Any]) -> None:
    """To a file beside it first, so that no other process ever reads half of it. A full disk is no failure."""
    arrays: dict[str, Any] = {}
    for name, value in textures.items():
        if isinstance(value, list):
            arrays |= {f"{name}@{place}": each for place, each in enumerate(value)}
        else:
            arrays[name] = value
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            temporary = file.name
            np.savez_compressed(file, **arrays)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
