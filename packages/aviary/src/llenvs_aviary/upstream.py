"""The upstream library, imported at first use and without a word, and run on the shared loop."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from importlib.metadata import version as distribution_version
from typing import Any, TypeVar

from llenvs.core.loop import run_sync

T = TypeVar("T")

_lock = threading.RLock()
_LITELLM_OFFLINE = "LITELLM_LOCAL_MODEL_COST_MAP"


def load(module: str = "aviary.core") -> Any:
    """The upstream's module of that name.

    Its core imports litellm where that is installed, which asks the network for prices unless told not to.
    """
    with _lock:
        before = os.environ.get(_LITELLM_OFFLINE)
        os.environ[_LITELLM_OFFLINE] = "True"
        try:
            loaded = importlib.import_module(module)
        finally:
            if before is None:
                del os.environ[_LITELLM_OFFLINE]
            else:
                os.environ[_LITELLM_OFFLINE] = before
        # errors of tools are results here; without any handler Python would print each on stderr
        logger = logging.getLogger("aviary")
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
        return loaded


def versions(*distributions: str) -> dict[str, str]:
    """Installed releases by name of the distribution."""
    return {name: distribution_version(name) for name in distributions}


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """Within it, Hugging Face's `datasets` shows no progress and logs nothing; what fails is raised.

    It has an error to log for an argument that the upstream still gives it.
    """
    import datasets

    level = datasets.logging.get_verbosity()
    shown = datasets.are_progress_bars_disabled()
    datasets.logging.set_verbosity(logging.CRITICAL)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.logging.set_verbosity(level)
        if not shown:
            datasets.enable_progress_bars()


def run(coroutine: Coroutine[Any, Any, T], limit: float | None, *, waits: bool = True) -> T:
    """What `coroutine` gives, run on the loop that all sync calls of this process share.

    Args:
        coroutine: of the upstream.
        limit: seconds; None for no limit.
        waits: False for one that never waits for anything. It is run here and now, without a limit: to hand it
            to another thread takes several times longer than such a coroutine does.

    Raises:
        TimeoutError: it took longer than `limit` seconds.
    """
    if not waits:
        try:
            coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        coroutine.close()
        raise RuntimeError("a coroutine of the upstream waits, though it was taken for one that does not")
    return run_sync(coroutine if limit is None else asyncio.wait_for(coroutine, limit))
