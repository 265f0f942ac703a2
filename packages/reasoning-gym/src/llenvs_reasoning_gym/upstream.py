"""The upstream library, imported at first use and without a word on stdout or stderr."""

from __future__ import annotations

import threading
import warnings
from importlib.metadata import version as distribution_version
from typing import Any

_lock = threading.Lock()
_library: Any = None


def library() -> Any:
    """The module `reasoning_gym`; the first call takes seconds (it imports matplotlib and sympy)."""
    global _library
    if _library is None:
        with _lock, warnings.catch_warnings():
            # cellpylib's invalid escape sequences, reported when it is first compiled
            warnings.simplefilter("ignore", SyntaxWarning)
            import reasoning_gym
            import reasoning_gym.composite
            import reasoning_gym.utils

            _library = reasoning_gym
    return _library


def version() -> str:
    """Release of the installed upstream (its own ``__version__`` lags behind)."""
    return distribution_version("reasoning-gym")


def dataset_class(name: str) -> Any:
    """The upstream's dataset class called `name`."""
    return library().factory.DATASETS[name][0]


def config_class(name: str) -> Any:
    """The dataclass that configures the upstream's dataset `name`."""
    return library().factory.DATASETS[name][1]


def extract_answer(completion: str) -> str | None:
    """What the upstream's `utils.extract_answer` finds: the last ``<answer>..</answer>``, stripped.

    Its search is quadratic in opening tags that nothing closes; what follows the last closing tag cannot match,
    so leaving it out gives the same answer in linear time.
    """
    end = completion.rfind("</answer>")
    if end < 0:
        return None
    found: str | None = library().utils.extract_answer(completion[: end + len("</answer>")])
    return found
