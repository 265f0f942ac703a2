from __future__ import annotations

from itertools import pairwise

from llenvs.evaluation.seeds import derive_seed


def test_seeds_are_the_same_in_every_process() -> None:
    # the upper 31 bits of BLAKE2b-64 of "0/request/0/0/0"
    assert derive_seed(0, "request", 0, 0, 0) == 1623756339


def test_seeds_fit_31_bits_and_differ() -> None:
    seeds = [
        derive_seed(s, "request", task, repeat, 0) for s in (0, 1) for task in range(500) for repeat in (0, 1)
    ]
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert len(set(seeds)) == len(seeds)


def test_neighbours_are_not_consecutive() -> None:
    seeds = sorted(derive_seed(0, "request", task, 0, 0) for task in range(500))
    assert min(b - a for a, b in pairwise(seeds)) > 1


def test_parts_do_not_run_together() -> None:
    assert derive_seed(1, 23) != derive_seed(12, 3)
