"""The counted generator gives what the standard one gives, from any place."""

from __future__ import annotations

import random

from llenvs_gem.randomness import CountedRandom


def test_it_goes_on_from_any_place_like_the_standard_generator() -> None:
    for seed in (0, 1, 42, 2**32 - 1):
        counted, standard, choice = CountedRandom(), random.Random(seed), random.Random(seed + 1)
        counted.seed(seed)
        for _ in range(300):
            draw = choice.choice(
                [
                    lambda r: r.random(),
                    lambda r: r.randint(1, 50),
                    lambda r: r.randrange(10**12),
                    lambda r: r.choice("abcdefg"),
                    lambda r: r.sample(range(100), 7),
                    lambda r: r.choices(range(9), k=3),
                    lambda r: r.shuffle(list(range(20))),
                    lambda r: r.getrandbits(200),
                ]
            )
            if choice.random() < 0.3:
                place, counted = counted.place, CountedRandom()
                counted.go_to(place)
            assert draw(counted) == draw(standard)


def test_it_goes_back() -> None:
    counted = CountedRandom()
    counted.seed(3)
    before = counted.place
    first = [counted.random() for _ in range(1000)]
    counted.go_to(before)
    assert [counted.random() for _ in range(1000)] == first
