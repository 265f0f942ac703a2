"""The same item in every process, also from generators that draw from global or fresh randomness."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Within it, the global generators of `random` and numpy start from `seed`, and asking the operating system
    for a seed gives `seed`.

    list_functions draws from the global `random`; programs stored in codeio draw from it and from numpy's, and
    some reseed them. Changes the whole process: for the worker, which serves one request at a time.
    """
    import numpy as np

    seed %= 1 << 32
    reseed, new_generator = random.seed, np.random.default_rng

    def seeded(a: Any = None, version: int = 2) -> None:
        reseed(seed if a is None else a, version)

    def generator(given: Any = None) -> Any:
        return new_generator(seed if given is None else given)

    random.seed = seeded
    np.random.default_rng = generator  # type: ignore[assignment]
    reseed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.seed = reseed
        np.random.default_rng = new_generator
