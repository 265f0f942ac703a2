"""The libraries `datasets` and `huggingface_hub`, without progress bars, warnings, log lines and load counts."""

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

    Nor does it report the use of its loaders to its makers, which it does for local files too. All of these are
    global settings of the libraries, put back at the end.
    """
    with _lock:
        datasets = library()
        had_bars = not datasets.are_progress_bars_disabled()
        levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        counts = getattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", False)
        datasets.disable_progress_bars()
        datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield datasets
        finally:
            datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = counts
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            if had_bars:
                datasets.enable_progress_bars()
