"""Global random numbers that are a function of the episode."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()


@contextmanager
def seeded(*parts: int) -> Iterator[None]:
    """Within it, Python's global random numbers (and numpy's, if loaded) begin as `parts` say.

    They are put back at the end. The generators are one for the whole process, so one thread at a time is inside.
    """
    text = ":".join(map(str, parts))  # a text gives the same numbers in every process
    with _lock:
        numpy_random = sys.modules.get("numpy.random")
        before = random.getstate()
        numpy_before = None if numpy_random is None else numpy_random.get_state()
        random.seed(text)
        if numpy_random is not None:
            numpy_random.seed(random.getrandbits(32))
            random.seed(text)
        try:
            yield
        finally:
            random.setstate(before)
            if numpy_random is not None and numpy_before is not None:
                numpy_random.set_state(numpy_before)
