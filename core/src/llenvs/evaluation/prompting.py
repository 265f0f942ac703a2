"""The prompt of a run, from what its caller gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts import (
    PromptBuilder,
    PromptSpec,
    SystemPrompt,
    detect_profile,
    make_prompt,
    make_system_prompt,
)


def prompt_builder(model: str, system_prompt: Any = None, prompt: Any = None) -> PromptBuilder:
    """The builder for the model called `model`.

    Args:
        system_prompt: see `llenvs.inference.prompts.make_system_prompt`.
        prompt: see `llenvs.inference.prompts.make_prompt`, or a `PromptBuilder`, which is taken as it is.

    Raises:
        InvalidOption: both give a system prompt; and what the two functions raise.
    """
    if isinstance(prompt, PromptBuilder):
        if system_prompt is not None:
            raise InvalidOption("system_prompt", system_prompt, "the prompt builder given as prompt has its own")
        return prompt
    return PromptBuilder(prompt_spec(system_prompt, prompt), detect_profile(model))


def prompt_spec(system_prompt: Any = None, prompt: Any = None) -> PromptSpec:
    """The specification that `system_prompt` and `prompt` make together; see `prompt_builder`."""
    if prompt is None:
        return PromptSpec(make_system_prompt(system_prompt))
    spec = make_prompt(prompt)
    if system_prompt is None:
        return spec
    mentioned = isinstance(prompt, SystemPrompt | str) or (
        isinstance(prompt, Mapping) and "system_prompt" in prompt
    )
    if mentioned or spec.system_prompt.fragments:
        raise InvalidOption(
            "system_prompt", system_prompt, "is given twice: prompt has a system_prompt of its own"
        )
    return replace(spec, system_prompt=make_system_prompt(system_prompt))
