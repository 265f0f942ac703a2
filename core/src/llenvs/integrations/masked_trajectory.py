"""A trajectory as a trainer needs it: token ids, which of them the model produced, and rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TokenSource = Literal["model", "tool", "user", "environment", "template"]
"""Whose tokens they are.

``model``: sampled, end-of-turn token included. ``tool``: contents of tool results. ``user``: contents of the
messages before the first answer (system prompt, task, examples), and of earlier answers in the prompt of a part of
a split trajectory. ``environment``: contents of later user messages, in which the environment speaks.
``template``: what the chat template puts around contents.
"""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Neighbouring tokens of one source.

    Attributes:
        source: whose they are.
        start: index of the first in ``prompt_ids + response_ids``.
        token_ids: the ids.
        text: as they read, control tokens written out.
        step_index: which action of the trajectory the model's tokens are, or follows them; None in the prompt.
    """

    source: TokenSource
    start: int
    token_ids: tuple[int, ...]
    text: str
    step_index: int | None = None

    @property
    def end(self) -> int:
        """Index after the last."""
        return self.start + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class MaskedTrajectory:
    """One sequence of tokens to train on.

    Attributes:
        prompt_ids: what stands before the first sampled token.
        response_ids: all from there to the last sampled token, environment and template tokens in between.
        response_mask: as long as `response_ids`: 1 where the model sampled the token, else 0.
        logprobs: as long as `response_ids`: what the engine gave for the model's tokens, 0.0 elsewhere; None when
            it gave none for some.
        spans: all tokens of prompt and response, by source, in order.
        rewards: of each step in the sequence, in order.
        reward: of the whole trajectory.
        exact: whether all ids are those that the engine read and sampled. False: some were made from text.
        truncated: whether `max_response_length` or the token limit of an answer cut it.
        steps: index of the first step in this sequence and the index after its last.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    response_mask: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    spans: tuple[TokenSpan, ...]
    rewards: tuple[float, ...]
    reward: float
    exact: bool
    truncated: bool
    steps: tuple[int, int]

    def token_rewards(self) -> tuple[float, ...]:
        """As long as `response_ids`: each step's reward at its last sampled token, 0.0 elsewhere.

        The reward of a step whose tokens were cut off stands at the last sampled token that is left, so the sum is
        that of `rewards` (if any sampled token is left).
        """
        placed = [0.0] * len(self.response_ids)
        last: dict[int, int] = {}
        for span in self.spans:
            if span.source == "model" and span.step_index is not None:
                last[span.step_index] = span.end - 1 - len(self.prompt_ids)
        if not last:
            return tuple(placed)
        end = max(last.values())
        for number, reward in enumerate(self.rewards, start=self.steps[0]):
            placed[last.get(number, end)] += reward
        return tuple(placed)

    def text_of(self, source: TokenSource) -> tuple[str, ...]:
        """The texts of all spans of one source."""
        return tuple(span.text for span in self.spans if span.source == source)
