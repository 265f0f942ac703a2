"""Seeds of single requests and episodes, derived from the seed of the run."""

from __future__ import annotations

import hashlib

SEED_BITS = 31
"""Derived seeds are below 2**31: every engine takes them, signed or not."""


def derive_seed(seed: int, *parts: int | str) -> int:
    """A seed in ``0 <= s < 2**31`` for one place in a run.

    Equal arguments give equal seeds in every process and on every machine; different ones give unrelated seeds
    (BLAKE2b). Consecutive integers would not do: some engines give sample i of a request ``seed + i``, so
    neighbouring requests would share samples.
    """
    text = "/".join([str(seed), *map(str, parts)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)
