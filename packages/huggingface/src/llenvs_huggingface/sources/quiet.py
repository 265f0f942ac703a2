"""The libraries `datasets` and `huggingface_hub`, without their progress bars, warnings and log lines."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_lock = threading.RLock()
_LOGGERS = ("datasets", "huggingface_hub", "fsspec", "filelock", "httpx", "httpx2")


def library() -> Any:
    """The module `datasets`; the first import takes a second or two."""
    with _lock:
        import datasets

        return datasets


@contextlib.contextmanager
def quiet() -> Iterator[Any]:
    """Gives the module `datasets`; while this lasts, it writes nothing to stderr. One thread at a time.

    Progress bars and log levels are global settings of the libraries, put back at the end.
    """
    with _lock:
        datasets = library()
        had_bars = not datasets.are_progress_bars_disabled()
        levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        datasets.disable_progress_bars()
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield datasets
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            if had_bars:
                datasets.enable_progress_bars()
