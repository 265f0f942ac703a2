"""The distribution that tokens are drawn from."""

from __future__ import annotations

import math

import pytest

from llenvs.inference import SamplingParams

torch = pytest.importorskip("torch", reason="torch is not installed")

from llenvs_transformers.token_sampler import TokenSampler  # noqa: E402

PROBABILITIES = [0.4, 0.3, 0.15, 0.1, 0.05]
LOGITS = torch.tensor(PROBABILITIES).log() + 3.0


def frequencies(sampling: SamplingParams, generated: tuple[int, ...] = (), count: int = 6000) -> list[float]:
    sampler = TokenSampler(sampling, 1, "cpu")
    drawn = [sampler.draw(LOGITS, generated) for _ in range(count)]
    return [drawn.count(token) / count for token in range(len(PROBABILITIES))]


def expected(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("sampling", "weights"),
    [
        (SamplingParams(), PROBABILITIES),
        (SamplingParams(temperature=0.0), [1, 0, 0, 0, 0]),
        (SamplingParams(temperature=0.5), [p**2 for p in PROBABILITIES]),
        (SamplingParams(top_k=2), [0.4, 0.3, 0, 0, 0]),
        (SamplingParams(top_k=50), PROBABILITIES),
        (SamplingParams(top_p=0.69), [0.4, 0.3, 0, 0, 0]),  # the smallest set that reaches it
        (SamplingParams(top_p=0.39), [1, 0, 0, 0, 0]),
        (SamplingParams(top_p=0.72), [0.4, 0.3, 0.15, 0, 0]),
        (SamplingParams(min_p=0.3), [0.4, 0.3, 0.15, 0, 0]),
        (SamplingParams(top_k=4, top_p=0.5, min_p=0.1), [0.4, 0.3, 0, 0, 0]),
    ],
)
def test_frequencies(sampling: SamplingParams, weights: list[float]) -> None:
    for seen, right in zip(frequencies(sampling), expected(weights), strict=True):
        # five standard deviations, and none at all of what is cut off
        assert abs(seen - right) <= 5 * math.sqrt(right * (1 - right) / 6000)


def test_penalties_count_what_was_generated() -> None:
    sampling = SamplingParams(frequency_penalty=0.5, presence_penalty=0.25)
    weights = [
        p * math.exp(-0.5 * n - 0.25 * (n > 0)) for p, n in zip(PROBABILITIES, [2, 1, 0, 0, 0], strict=True)
    ]
    for seen, right in zip(frequencies(sampling, (0, 1, 0)), expected(weights), strict=True):
        assert abs(seen - right) <= 5 * math.sqrt(right * (1 - right) / 6000)


def test_a_seed_is_a_sequence_of_its_own() -> None:
    def drawn(seed: int) -> list[int]:
        sampler = TokenSampler(SamplingParams(), seed, "cpu")
        tokens = []
        for _ in range(40):
            torch.rand(3)  # somebody else's use of torch's generator
            tokens.append(sampler.draw(LOGITS, ()))
        return tokens

    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)
    assert drawn(-1) == drawn(2**63 - 1)
