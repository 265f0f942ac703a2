"""Whether what a server sent is of the types that its API documents; SDKs do not look."""

from __future__ import annotations

from llenvs.core.generation import Generation


def check_types(generation: Generation) -> Generation:
    """`generation` itself, when texts are texts and numbers are numbers.

    Raises:
        TypeError: naming the field that holds something else.
    """
    usage = generation.usage
    fields: dict[str, tuple[object, type | tuple[type, ...]]] = {
        "text": (generation.text, str),
        "reasoning": (generation.reasoning, (str, type(None))),
        "model": (generation.model, str),
        "prompt_tokens": (usage.prompt_tokens, (int, float)),
        "completion_tokens": (usage.completion_tokens, (int, float)),
        "cached_tokens": (usage.cached_tokens, (int, float)),
        "reasoning_tokens": (usage.reasoning_tokens, (int, float)),
    }
    for name, (value, kind) in fields.items():
        if not isinstance(value, kind):
            raise TypeError(f"its {name} is {type(value).__name__}")
    for ids in (generation.prompt_token_ids, generation.completion_token_ids):
        if not all(isinstance(each, int) for each in ids or ()):
            raise TypeError("its token ids are no numbers")
    for each in generation.logprobs or ():
        pairs = ((each.token, each.logprob), *each.top)
        if not all(isinstance(token, str) and isinstance(logprob, int | float) for token, logprob in pairs):
            raise TypeError("its logprobs are not tokens with numbers")
    return generation
