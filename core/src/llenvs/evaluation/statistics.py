"""Estimates with their uncertainty: intervals for rates and means, and pass@k."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

_BOOTSTRAP_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval ``low <= x <= high`` at `level` (0.95: 95 %), made by `method`."""

    low: float
    high: float
    level: float = 0.95
    method: str = ""


def wilson_interval(successes: int, trials: float, level: float = 0.95) -> Interval:
    """The Wilson score interval of a rate (E. B. Wilson, JASA 22, 1927).

    Args:
        successes: 0 <= successes <= trials.
        trials: > 0; not whole when it is an effective sample size.
        level: in (0, 1).
    """
    if not 0 <= successes <= trials or trials <= 0:
        raise ValueError(f"need 0 <= successes <= trials and trials > 0, got {successes} of {trials}")
    return _wilson(successes / trials, trials, level)


def clustered_wilson_interval(successes: Sequence[int], trials: Sequence[int], level: float = 0.95) -> Interval:
    """The Wilson interval of a rate when trials come in clusters (several attempts at each task).

    Attempts at one task resemble each other, so n attempts say less than n tasks would. The number of trials is
    divided by the design effect (L. Kish, Survey Sampling, 1965): the variance of the ratio estimate between
    clusters over the binomial one, kept between 1 and the mean cluster size.

    Args:
        successes, trials: per cluster; clusters without trials are skipped.
    """
    clusters = [(s, n) for s, n in zip(successes, trials, strict=True) if n > 0]
    total, n = sum(s for s, _ in clusters), sum(n for _, n in clusters)
    if n == 0:
        raise ValueError("no trials")
    rate, m = total / n, len(clusters)
    binomial = rate * (1 - rate) / n
    effect = 1.0
    if m > 1 and binomial > 0:
        between = m / (m - 1) * sum((s - rate * size) ** 2 for s, size in clusters) / n**2
        effect = min(max(between / binomial, 1.0), n / m)
    elif m == 1 or binomial == 0:
        effect = n / m  # nothing is known about how alike attempts are: the careful end
    return _wilson(rate, n / effect, level)


def _wilson(rate: float, n: float, level: float) -> Interval:
    z = NormalDist().inv_cdf(0.5 + level / 2)
    denominator = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / denominator
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / denominator
    return Interval(max(0.0, centre - half), min(1.0, centre + half), level, "wilson")


def bootstrap_interval(
    sums: Sequence[float],
    counts: Sequence[int] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The percentile bootstrap interval of a mean (B. Efron, Annals of Statistics 7, 1979), over clusters.

    Args:
        sums: sum of the values of each cluster (the value itself for clusters of one).
        counts: values in each cluster, None for one each; clusters with none are skipped.
        level: in (0, 1).
        resamples: number of resamples, >= 1.
        seed: equal seeds give equal intervals.

    Above 2,000 clusters the resampling is replaced by what its distribution tends to, a normal one with the
    standard error of the ratio estimate (`method` is then "normal").
    """
    sizes = [1] * len(sums) if counts is None else counts
    clusters = [(s, n) for s, n in zip(sums, sizes, strict=True) if n > 0]
    m = len(clusters)
    if m == 0:
        raise ValueError("no values")
    n = sum(size for _, size in clusters)
    mean = math.fsum(s for s, _ in clusters) / n
    if m > _BOOTSTRAP_LIMIT:
        spread = math.fsum((s - mean * size) ** 2 for s, size in clusters)
        half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(m / (m - 1) * spread) / n
        return Interval(mean - half, mean + half, level, "normal")
    draw = random.Random(seed).choices
    if all(size == 1 for _, size in clusters):
        values = [s for s, _ in clusters]
        means = [math.fsum(draw(values, k=m)) / m for _ in range(resamples)]
    else:
        means = []
        for _ in range(resamples):
            drawn = draw(clusters, k=m)
            means.append(math.fsum(s for s, _ in drawn) / sum(size for _, size in drawn))
    means.sort()
    tail = (1 - level) / 2
    return Interval(_quantile(means, tail), _quantile(means, 1 - tail), level, "bootstrap")


def _quantile(ordered: Sequence[float], q: float) -> float:
    """Linear interpolation between the order statistics (type 7 of Hyndman and Fan, 1996)."""
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """Chance that at least one of `k` attempts at a task succeeds, given `successes` of `attempts`.

    The unbiased estimator ``1 - C(n - c, k) / C(n, k)`` of M. Chen et al., "Evaluating Large Language Models
    Trained on Code", 2021; needs 1 <= k <= attempts.
    """
    if not 1 <= k <= attempts or not 0 <= successes <= attempts:
        raise ValueError(
            f"need 1 <= k <= attempts and 0 <= successes <= attempts, got {k=}, {attempts=}, {successes=}"
        )
    return 1.0 - math.comb(attempts - successes, k) / math.comb(attempts, k)
