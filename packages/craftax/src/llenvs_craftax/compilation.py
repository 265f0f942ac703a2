"""Compiling once: kept between processes, under a lock, with a word about why it takes so long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llenvs_craftax.cache_folder import cache_folder

logger = logging.getLogger("llenvs_craftax")

_lock = threading.RLock()
_announced: set[str] = set()
_KEPT_FROM_SECONDS = 0.5  # programs that compile faster are not worth a file


def announce(variant: str) -> None:
    """Say once a process and game that it is being compiled."""
    if variant not in _announced:
        _announced.add(variant)
        slow = "up to a minute" if variant == "full" else "up to half a minute"
        logger.warning("compiling Craftax (%s) for this process: %s the first time, less later", variant, slow)


@contextmanager
def compiling() -> Iterator[None]:
    """One compilation at a time, with JAX's own persistent cache in our folder unless the user has one.

    JAX has this setting for the whole process alone; it is put back after the block.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    folder = cache_folder("compiled")
    with _lock:
        if folder is None or jax.config.jax_compilation_cache_dir is not None:
            yield
            return
        seconds = jax.config.jax_persistent_cache_min_compile_time_secs
        _set(jax, str(folder), _KEPT_FROM_SECONDS)
        compilation_cache.reset_cache()  # JAX looks at the setting once
        try:
            yield
        finally:
            _set(jax, None, seconds)
            compilation_cache.reset_cache()


def _set(jax: Any, folder: str | None, seconds: float) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
