"""Generations of plain text as generations with tool calls."""

from __future__ import annotations

from dataclasses import replace

from llenvs.core.generation import FinishReason, Generation
from llenvs.inference.tool_calls.parser import ToolCallParser
from llenvs.inference.tool_calls.rendering import RESPONSE_TEXT


def with_tool_calls(
    generation: Generation, parser: ToolCallParser, prefix: str = "", written: str | None = None
) -> Generation:
    """`generation` with the calls that its text holds, and the text around them; as it is when there are none.

    Args:
        generation: token ids, logprobs and usage stay.
        parser: of the form in which the model calls tools.
        prefix: with which the answer had to begin; a call may begin in it.
        written: what the model wrote, where the text is less than that (it lacks control tokens).
    """
    whole = prefix + (generation.text if written is None else written)
    parsed = parser.parse(whole)
    if not parsed.calls:
        return generation
    cut_off = generation.finish_reason is FinishReason.LENGTH
    return replace(
        generation,
        text=parsed.text.removeprefix(prefix.strip()) if prefix else parsed.text,
        tool_calls=parsed.calls,
        finish_reason=generation.finish_reason if cut_off else FinishReason.TOOL_CALLS,
        metadata={**generation.metadata, RESPONSE_TEXT: whole},
    )
