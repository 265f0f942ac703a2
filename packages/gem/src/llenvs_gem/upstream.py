"""The upstream library, imported at first use and without a trace in the user's process."""

from __future__ import annotations

import importlib
import logging
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as distribution_version
from importlib.util import find_spec
from typing import Any

from llenvs.core.errors import NotInstalled, UpstreamFailed

_lock = threading.RLock()


def module(name: str) -> Any:
    """The upstream's module `name`; the first call takes seconds (it imports reasoning_gym, sympy and matplotlib).

    Importing gem configures the root logger to print everything, and something below it draws from the global
    random generators; both are put back as they were.

    Raises:
        NotInstalled: it is missing, with the command that installs it.
        UpstreamFailed: its import failed.
    """
    if find_spec("gem") is None:
        raise NotInstalled("GEM", "gem", "gem-llm 0.1.0; pip refuses it on Python 3.12.1 and later, uv does not")
    if name in sys.modules:
        return importlib.import_module(name)
    with _lock, _undisturbed():
        try:
            return importlib.import_module(name)
        except Exception as error:
            raise UpstreamFailed("gem", f"importing {name}", error) from error


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What it holds leaves the root logger and the global random generators as they are."""
    import numpy as np

    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    chance, numpy_chance = random.getstate(), np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # invalid escapes, reported when first compiled
            yield
    finally:
        random.setstate(chance)
        np.random.set_state(numpy_chance)
        for handler in [each for each in root.handlers if each not in handlers]:
            root.removeHandler(handler)
        root.setLevel(level)


def version() -> str:
    """Release of the installed upstream."""
    return distribution_version("gem-llm")
