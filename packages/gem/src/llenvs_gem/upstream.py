"""The upstream library, imported at first use and without a trace in the user's process."""

from __future__ import annotations

import importlib
import logging
import threading
import warnings
from importlib.metadata import version as distribution_version
from importlib.util import find_spec
from typing import Any

from llenvs.core.errors import NotInstalled, UpstreamFailed

_lock = threading.RLock()


def module(name: str) -> Any:
    """The upstream's module `name`; the first call takes seconds (it imports reasoning_gym, sympy and matplotlib).

    Importing gem configures the root logger to print everything; what it added is taken away again.

    Raises:
        NotInstalled: it is missing, with the command that installs it.
        UpstreamFailed: its import failed.
    """
    if find_spec("gem") is None:
        raise NotInstalled("GEM", "gem", "gem-llm 0.1.0; pip refuses it on Python 3.12.1 and later, uv does not")
    root = logging.getLogger()
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # invalid escapes, reported when first compiled
        handlers, level = list(root.handlers), root.level
        try:
            return importlib.import_module(name)
        except Exception as error:
            raise UpstreamFailed("gem", f"importing {name}", error) from error
        finally:
            for handler in [each for each in root.handlers if each not in handlers]:
                root.removeHandler(handler)
            root.setLevel(level)


def version() -> str:
    """Release of the installed upstream."""
    return distribution_version("gem-llm")
