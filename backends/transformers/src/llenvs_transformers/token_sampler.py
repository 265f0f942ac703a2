"""Sampling one token, so that a seed gives the same text whatever else is in the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llenvs.inference.sampling import SamplingParams

if TYPE_CHECKING:
    import torch


class TokenSampler:
    """Draws the tokens of one generation.

    In the order of transformers: penalties, temperature, top_k, top_p, min_p. A token is drawn by the Gumbel-max
    trick: argmax over ``log p + g`` with independent standard Gumbel noise g is a sample of p (Gumbel 1954;
    Maddison, Tarlow and Minka 2014). The noise comes from a generator of this generation's own, on the model's
    device, so neither neighbours nor other uses of torch's random numbers change it.

    Args:
        sampling: what is None there means the model's own distribution.
        seed: any integer; used modulo 2**63.
        device: of the logits.
    """

    def __init__(self, sampling: SamplingParams, seed: int, device: Any) -> None:
        import torch

        self._temperature = 1.0 if sampling.temperature is None else sampling.temperature
        self._top_k = sampling.top_k or 0
        self._top_p = 1.0 if sampling.top_p is None else sampling.top_p
        self._min_p = sampling.min_p or 0.0
        self._presence = sampling.presence_penalty or 0.0
        self._frequency = sampling.frequency_penalty or 0.0
        self._generator = torch.Generator(device=device).manual_seed(seed % 2**63)

    def draw(self, logits: torch.Tensor, generated: Sequence[int]) -> int:
        """The next token.

        Args:
            logits: of the vocabulary, shape (V,), float32.
            generated: ids so far, which the penalties count.
        """
        import torch

        if (self._presence or self._frequency) and generated:
            logits = self._penalised(logits, generated)
        if self._temperature == 0.0:
            return int(logits.argmax())
        scores = self._truncated(logits / self._temperature)
        noise = torch.empty_like(scores).exponential_(generator=self._generator)  # -log of it is Gumbel noise
        return int((scores - noise.log()).argmax())

    def _penalised(self, logits: torch.Tensor, generated: Sequence[int]) -> torch.Tensor:
        """OpenAI's formula: ``logit - frequency * count - presence * (count > 0)``."""
        import torch

        ids = torch.tensor(generated, device=logits.device)
        counts = torch.bincount(ids, minlength=len(logits)).to(logits.dtype)
        return logits - self._frequency * counts - self._presence * (counts > 0)

    def _truncated(self, scores: torch.Tensor) -> torch.Tensor:
        import torch

        out = float("-inf")
        if 0 < self._top_k < len(scores):
            scores = scores.masked_fill(scores < scores.topk(self._top_k).values[-1], out)
        if self._top_p < 1.0:
            ordered, order = scores.sort(descending=True)
            probabilities = ordered.softmax(-1)
            # the smallest set that reaches top_p: drop a token when those before it already do
            dropped = probabilities.cumsum(-1) - probabilities >= self._top_p
            scores = scores.masked_fill(torch.zeros_like(dropped).scatter(0, order, dropped), out)
        if self._min_p > 0.0:
            probabilities = scores.softmax(-1)
            scores = scores.masked_fill(probabilities < self._min_p * probabilities.max(), out)
        return scores
