"""From the token ids that an engine generated to the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.inference.local.chat_template import RenderedPrompt
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.local.stop_strings import cut_at_stop
from llenvs.inference.request import GenerationRequest
from llenvs.inference.tool_calls.reading import with_tool_calls


def read_answer(
    chat: ChatTokenizer,
    request: GenerationRequest,
    prompt: RenderedPrompt,
    ids: Sequence[int],
    *,
    ended: bool,
    stop: str | None,
    finish_reason: FinishReason,
    logprobs: tuple[TokenLogprob, ...] | None,
    usage: Usage,
    model: str,
    latency: float,
    metadata: Mapping[str, Any],
) -> Generation:
    """The generation that `ids` are.

    Args:
        chat: renders and spells.
        request: what was asked.
        prompt: as it was rendered.
        ids: what was generated, the end of turn or the tokens of the stop string included.
        ended: whether the last id ends the turn; it is no part of the text.
        stop: the stop string that ended it; the text ends before it.
        finish_reason: becomes TOOL_CALLS when the model called tools and was not cut off.
        logprobs, usage, model, latency, metadata: of the generation.
    """

    said = ids[:-1] if ended else ids

    def text(special: bool) -> str:
        whole = chat.decode(prompt.token_ids, said, special)
        return whole if stop is None else cut_at_stop(whole, (stop,))[0]

    generation = Generation(
        text=text(special=False),
        finish_reason=finish_reason,
        usage=usage,
        prompt_token_ids=prompt.token_ids,
        completion_token_ids=tuple(ids),
        logprobs=logprobs,
        model=model,
        latency=latency,
        metadata=metadata if stop is None else {**metadata, "stop": stop},
    )
    if not request.tools or request.tool_choice == "none":
        return generation
    return with_tool_calls(generation, chat.parser, request.prefix, written=text(special=True))
