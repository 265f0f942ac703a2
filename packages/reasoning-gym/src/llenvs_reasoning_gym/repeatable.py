"""The same item in every process, also from generators that draw from global or fresh randomness."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Within it, the global generators of `random` and numpy start from `seed`, and so does every other source
    of randomness (asking for a seed, the operating system's random bytes).

    list_functions draws from the global `random`; programs stored in codeio draw from it and from numpy's, and
    some reseed them or use `secrets`. The clock keeps running: a few programs of codeio read it. Changes the
    whole process: for the worker, which serves one request at a time.
    """
    import numpy as np

    seed %= 1 << 32
    reseed, new_generator = random.seed, np.random.default_rng
    bytes_source = random.Random(seed)

    def seeded(a: Any = None, version: int = 2) -> None:
        reseed(seed if a is None else a, version)

    def generator(given: Any = None) -> Any:
        return new_generator(seed if given is None else given)

    replacements: list[tuple[Any, str, Any]] = [
        (random, "seed", seeded),
        (np.random, "default_rng", generator),
        (os, "urandom", bytes_source.randbytes),
        (random, "_urandom", bytes_source.randbytes),
    ]
    originals = [getattr(module, name) for module, name, _ in replacements]
    reseed(seed)
    np.random.seed(seed)
    try:
        for module, name, replacement in replacements:
            setattr(module, name, replacement)
        yield
    finally:
        for (module, name, _), original in zip(replacements, originals, strict=True):
            setattr(module, name, original)
