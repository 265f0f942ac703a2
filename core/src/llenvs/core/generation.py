"""Generations: what a model produced for one request, down to the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from llenvs.core.encoding import record, record_enum
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolCall


@record_enum
class FinishReason(StrEnum):
    """Why a generation ended; every backend's own words are mapped to these."""

    STOP = "stop"
    """the model ended its turn, or a stop string came"""
    LENGTH = "length"
    """max_tokens or the context was used up"""
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@record
@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token: its text, the natural logarithm of its probability, id and alternatives.

    `token_id` is None where the API gives none. `top` holds (token, logprob) pairs, best first.
    """

    token: str
    logprob: float
    token_id: int | None = None
    top: tuple[tuple[str, float], ...] = ()


@record
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one or more generations; `cost` in US dollars, None where unknown."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        known = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(known) if known else None,
        )


@record
@dataclass(frozen=True, slots=True)
class Generation:
    """One sample of a model's answer.

    Attributes:
        text: what the model said (without an assistant prefix that the request gave).
        tool_calls: calls it made, parsed.
        finish_reason: why it ended.
        usage: tokens and cost.
        prompt_token_ids, completion_token_ids: the exact ids, end-of-turn token included, where the engine
            gives them, else None.
        logprobs: one per completion token when asked for, else None.
        reasoning: thinking that the API gives apart from the text.
        model: the model that answered, as the API names it.
        latency: seconds from sending to the last token.
        metadata: what is particular to the backend.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    usage: Usage = field(default_factory=Usage)
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    reasoning: str | None = None
    model: str = ""
    latency: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_message(self) -> ChatMessage:
        """The assistant message that continues the chat after this generation."""
        return ChatMessage("assistant", self.text, tool_calls=self.tool_calls, metadata=self.metadata)
