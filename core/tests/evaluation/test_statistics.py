from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llenvs.evaluation.statistics import (
    bootstrap_interval,
    clustered_wilson_interval,
    pass_at_k,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)],
)
def test_wilson_interval_of_textbook_cases(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, trials)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert (interval.level, interval.method) == (0.95, "wilson")


def test_wilson_interval_at_another_level() -> None:
    interval = wilson_interval(8, 10, level=0.9)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.5408, 0.9314)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_rate_and_mirrors(case: tuple[int, int]) -> None:
    successes, trials = case
    interval, mirrored = wilson_interval(successes, trials), wilson_interval(trials - successes, trials)
    assert 0 <= interval.low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= interval.high <= 1
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (-1, 5), (6, 5)])
def test_wilson_interval_refuses_what_is_no_rate(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(successes, trials)


def test_attempts_that_always_agree_say_no_more_than_one_attempt_each() -> None:
    successes = [4] * 8 + [0] * 2
    clustered = clustered_wilson_interval(successes, [4] * 10)
    once = wilson_interval(8, 10)
    assert clustered.low == pytest.approx(once.low)
    assert clustered.high == pytest.approx(once.high)


def test_attempts_that_vary_within_tasks_alone_count_in_full() -> None:
    clustered = clustered_wilson_interval([2] * 50, [4] * 50)
    assert clustered == wilson_interval(100, 200)


def test_nothing_is_assumed_about_attempts_that_all_succeed() -> None:
    assert clustered_wilson_interval([4] * 10, [4] * 10) == wilson_interval(10, 10)


def test_clusters_without_trials_are_skipped() -> None:
    assert clustered_wilson_interval([1, 0, 0], [1, 1, 0]) == clustered_wilson_interval([1, 0], [1, 1])


def test_bootstrap_interval_of_constant_values_is_a_point() -> None:
    interval = bootstrap_interval([0.25] * 7)
    assert (interval.low, interval.high, interval.method) == (0.25, 0.25, "bootstrap")


def test_bootstrap_interval_agrees_with_the_standard_error() -> None:
    values = [float(i % 2) for i in range(400)]
    interval = bootstrap_interval(values)
    half = 1.96 * math.sqrt(0.25 / 400)
    assert interval.low == pytest.approx(0.5 - half, abs=0.01)
    assert interval.high == pytest.approx(0.5 + half, abs=0.01)
    assert bootstrap_interval(values) == interval
    assert bootstrap_interval(values, seed=1) != interval


def test_bootstrap_interval_resamples_tasks_not_attempts() -> None:
    # attempts at a task agree: 100 tasks of 4 attempts are as uncertain as 100 attempts
    sums = [4.0 * (i % 2) for i in range(100)]
    clustered = bootstrap_interval(sums, [4] * 100)
    half = 1.96 * math.sqrt(0.25 / 100)
    assert clustered.low == pytest.approx(0.5 - half, abs=0.02)
    assert clustered.high == pytest.approx(0.5 + half, abs=0.02)


def test_many_values_take_the_normal_limit_which_agrees_with_resampling() -> None:
    draw = random.Random(5)
    values = [draw.random() ** 3 for _ in range(2000)]
    resampled, limit = bootstrap_interval(values), bootstrap_interval([*values, values[0]])
    assert (resampled.method, limit.method) == ("bootstrap", "normal")
    assert limit.low == pytest.approx(resampled.low, abs=0.002)
    assert limit.high == pytest.approx(resampled.high, abs=0.002)


@settings(max_examples=60)
@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_choices_with_a_success(case: tuple[int, int, int]) -> None:
    attempts, successes, k = case
    results = [True] * successes + [False] * (attempts - successes)
    choices = list(itertools.combinations(results, k))
    assert pass_at_k(attempts, successes, k) == pytest.approx(sum(any(c) for c in choices) / len(choices))


def test_pass_at_k_of_the_paper() -> None:
    # 1 - C(7, 5) / C(10, 5) = 1 - 21 / 252
    assert pass_at_k(10, 3, 5) == pytest.approx(1 - 21 / 252)
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3)
    assert pass_at_k(10, 6, 5) == 1.0
    with pytest.raises(ValueError, match="k"):
        pass_at_k(3, 1, 4)
