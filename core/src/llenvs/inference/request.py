"""A request to a backend, and what a backend can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolDefinition
from llenvs.inference.errors import UnsupportedFeature
from llenvs.inference.sampling import SamplingParams


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What a model is asked.

    Attributes:
        messages: the chat; the last one is not from the assistant.
        sampling: how to sample.
        tools: what the model may call.
        tool_choice: "auto", "none", "required", or the name of a tool; None for the backend's default.
        prefix: text with which the assistant's answer has to begin (prefix continuation); the generation's
            text does not repeat it.
        grammar: GBNF text that the answer must match, for engines that take one.
        json_schema: JSON Schema that the answer must match.
    """

    messages: tuple[ChatMessage, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str | None = None
    prefix: str = ""
    grammar: str | None = None
    json_schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.messages:
            raise ValueError("a request needs at least one message")
        if tuple(self.messages)[-1].role == "assistant":
            raise ValueError(
                "the last message of a request is from the assistant; to continue it give its text as prefix"
            )
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "tools", tuple(self.tools))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do; what it cannot is refused before anything is sent.

    `native_n` tells whether n samples cost one request. `max_top_logprobs` bounds `SamplingParams.logprobs`.
    `penalties` stands for presence and frequency penalty. `hints` says by feature why it is not there or what
    would help, for the error.
    """

    logprobs: bool = False
    max_top_logprobs: int = 0
    token_ids: bool = False
    prefix: bool = False
    tools: bool = False
    images: bool = False
    seed: bool = False
    stop: bool = True
    temperature: bool = True
    top_p: bool = True
    native_n: bool = False
    top_k: bool = False
    min_p: bool = False
    penalties: bool = False
    reasoning_effort: bool = False
    grammar: bool = False
    json_schema: bool = False
    hints: Mapping[str, str] = field(default_factory=dict, compare=False)

    def check(self, request: GenerationRequest, backend: str) -> None:
        """Refuse what cannot be done.

        Raises:
            UnsupportedFeature: naming the feature.
        """
        sampling = request.sampling
        asked = {
            "logprobs": sampling.logprobs is not None,
            "prefix": bool(request.prefix),
            "tools": bool(request.tools),
            "images": any(m.images for m in request.messages),
            "seed": sampling.seed is not None,
            "stop": bool(sampling.stop),
            "temperature": sampling.temperature is not None,
            "top_p": sampling.top_p is not None,
            "top_k": sampling.top_k not in (None, 0),
            "min_p": sampling.min_p not in (None, 0.0),
            "penalties": sampling.presence_penalty is not None or sampling.frequency_penalty is not None,
            "reasoning_effort": sampling.reasoning_effort is not None,
            "grammar": request.grammar is not None,
            "json_schema": request.json_schema is not None,
        }
        for feature, wanted in asked.items():
            if wanted and not getattr(self, feature):
                raise UnsupportedFeature(backend, feature, self.hints.get(feature, ""))
        if sampling.logprobs is not None and sampling.logprobs > self.max_top_logprobs:
            raise UnsupportedFeature(
                backend, f"logprobs={sampling.logprobs}", f"at most {self.max_top_logprobs} alternatives"
            )
