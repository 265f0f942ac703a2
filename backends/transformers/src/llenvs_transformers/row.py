"""One generation inside a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llenvs.core.generation import FinishReason, TokenLogprob
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.local.stop_strings import cut_at_stop, longest_in_tokens
from llenvs.inference.sampling import SamplingParams

if TYPE_CHECKING:
    import torch

    from llenvs_transformers.token_sampler import TokenSampler


@dataclass
class Row:
    """A prompt on its way to an answer.

    Attributes:
        prompt: token ids.
        sampling: stop strings and wanted logprobs.
        sampler: draws its tokens.
        limit: most tokens to generate, >= 1.
        ends: ids that end it.
        chat: spells tokens.
        future: gets this row when it is done; cancelling it ends the row.
        ids: generated so far.
        logprobs: one for each, when wanted.
        finish_reason: set when it is done.
        stop: the stop string that ended it.
        started: of the clock `time.perf_counter`, when it was asked for; `seconds` is the time until it was done.
    """

    prompt: Sequence[int]
    sampling: SamplingParams
    sampler: TokenSampler
    limit: int
    ends: frozenset[int]
    chat: ChatTokenizer
    future: Future[Row] = field(default_factory=Future)
    ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    stop: str | None = None
    started: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    @property
    def active(self) -> bool:
        """Whether it wants further tokens."""
        return self.finish_reason is None and not self.future.cancelled()

    def advance(self, logits: torch.Tensor) -> int:
        """Draw the next token from logits of shape (V,), float32, and finish if it is the last."""
        token = self.sampler.draw(logits, self.ids)
        if self.sampling.logprobs is not None:
            self.logprobs.append(_logprob(logits, token, self.sampling.logprobs, self.chat.spelled))
        self.ids.append(token)
        if token in self.ends or (self.sampling.stop and self._came_to_a_stop()):
            self._finish(FinishReason.STOP)
        elif len(self.ids) >= self.limit:
            self._finish(FinishReason.LENGTH)
        return token

    @property
    def ended(self) -> bool:
        """Whether the last id ends the turn."""
        return bool(self.ids) and self.ids[-1] in self.ends

    def _came_to_a_stop(self) -> bool:
        tail = longest_in_tokens(self.sampling.stop)
        before = [*self.prompt, *self.ids[:-tail]]
        if cut_at_stop(self.chat.decode(before, self.ids[-tail:]), self.sampling.stop)[1] is None:
            return False
        self.stop = cut_at_stop(self.chat.decode(self.prompt, self.ids), self.sampling.stop)[1]
        return self.stop is not None

    def _finish(self, reason: FinishReason) -> None:
        self.finish_reason = reason
        self.seconds = time.perf_counter() - self.started
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(self)

    def fail(self, error: Exception) -> None:
        """End it with an error, unless it is done."""
        if self.finish_reason is None:
            self.finish_reason = FinishReason.UNKNOWN
            if self.future.set_running_or_notify_cancel():
                self.future.set_exception(error)


def _logprob(logits: torch.Tensor, token: int, count: int, spelled: Callable[[int], str]) -> TokenLogprob:
    distribution = logits.log_softmax(-1)
    top: tuple[tuple[str, float], ...] = ()
    if count:
        best = distribution.topk(min(count, len(distribution)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        top = tuple((spelled(each), float(value)) for each, value in pairs)
    return TokenLogprob(spelled(token), float(distribution[token]), token, top)
