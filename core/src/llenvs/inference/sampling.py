"""Sampling parameters, the same for every backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from llenvs.core.errors import InvalidOption
from llenvs.core.options import parse_options


class SamplingParams(BaseModel):
    """How to sample. What is None is left to the backend's or provider's default.

    Attributes:
        max_tokens: most tokens to generate, >= 1.
        temperature: >= 0; 0 is greedy.
        top_p: in (0, 1].
        top_k: >= 0; 0 means no limit.
        min_p: in [0, 1].
        seed: for sampling that can be repeated.
        stop: strings that end the generation (not part of the text).
        logprobs: None for none; k >= 0 asks for the chosen token's logprob and the k most likely ones.
        presence_penalty, frequency_penalty: in [-2, 2].
        reasoning_effort: for reasoning models, in the provider's words.
        extra: parameters of one backend, passed on as they are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    top_k: int | None = Field(default=None, ge=0)
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = Field(default=None, ge=0)
    presence_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    frequency_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    reasoning_effort: str | None = None
    extra: Mapping[str, Any] = Field(default_factory=dict)

    @field_validator("stop", mode="before")
    @classmethod
    def _one_stop(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @classmethod
    def of(cls, value: SamplingParams | Mapping[str, Any] | None) -> SamplingParams:
        """`value` itself, or what its fields say.

        Raises:
            UnknownOption, InvalidOption: naming the field.
        """
        if isinstance(value, SamplingParams):
            return value
        if not isinstance(value, Mapping | None):
            raise InvalidOption("sampling", value, "must be a mapping")
        return parse_options(cls, value or {}, "sampling")

    def with_seed(self, seed: int | None) -> SamplingParams:
        """The same with another seed."""
        return self.model_copy(update={"seed": seed})

    def with_defaults(self, defaults: SamplingParams) -> SamplingParams:
        """The same, with what is unset here (None, no stop strings) taken from `defaults`; `extra` is merged."""
        unset = {
            name: getattr(defaults, name)
            for name in type(self).model_fields
            if name != "extra" and getattr(self, name) in (None, ())
        }
        return self.model_copy(update={**unset, "extra": {**defaults.extra, **self.extra}})
