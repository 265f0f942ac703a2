"""From a Chat Completions answer to generations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference.errors import AuthenticationFailed, BackendError, ProviderFailed, UnsupportedFeature
from llenvs_openai.custom_tools import CUSTOM_CALLS, call_of
from llenvs_openai.failures import failure_in_answer

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion
    from openai.types.chat.chat_completion import Choice

_FINISH = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}


def generations_of(
    answer: object,
    *,
    backend: str,
    count: int,
    logprobs: int | None = None,
    token_ids: bool = False,
    tools: Sequence[ToolDefinition] = (),
    forbidden: type[BackendError] = AuthenticationFailed,
) -> list[Generation]:
    """The `count` generations in `answer`.

    Args:
        answer: what the SDK returned; text, where the server sent no JSON.
        logprobs: alternatives of each token that were asked for, None for no logprobs.
        token_ids: whether they were asked for.
        tools: of the request.
        forbidden: what an error of code 403 means.

    Raises:
        ProviderFailed: an answer that makes no sense, or that holds an error.
        UnsupportedFeature: logprobs or token ids were asked for and the server left them out.
    """
    from openai.types.chat import ChatCompletion

    if not isinstance(answer, ChatCompletion):
        raise ProviderFailed(backend, f"the server's answer is no chat completion: {str(answer)[:200]!r}")
    error = (answer.model_extra or {}).get("error")
    if error:
        raise failure_in_answer(backend, error, forbidden)
    choices = answer.choices
    if not isinstance(choices, list) or len(choices) < count:
        found = len(choices) if isinstance(choices, list) else 0
        raise ProviderFailed(backend, f"the server sent {found} choices instead of {count}")
    choices = in_order(choices)[:count]
    for choice in choices:
        if choice.message is None:
            raise ProviderFailed(backend, "the server sent a choice without a message")
        if str(choice.finish_reason) == "error":
            inside = (choice.model_extra or {}).get("error") or "finish_reason error"
            raise failure_in_answer(backend, inside, forbidden)
    ids = [_token_ids(choice.model_extra, "token_ids") for choice in choices]
    prompt_ids = _token_ids(answer.model_extra, "prompt_token_ids")
    scores = [_logprobs(choice, logprobs or 0) for choice in choices]
    if logprobs is not None and any(each is None for each in scores):
        raise UnsupportedFeature(backend, "logprobs", "the server left them out of its answer")
    if token_ids and (prompt_ids is None or any(each is None for each in ids)):
        raise UnsupportedFeature(backend, "token ids", "the server left them out of its answer")
    lengths = [len(one) if one is not None else None for one in (i or s for i, s in zip(ids, scores, strict=True))]
    usages = _usages(answer, lengths)
    return [
        _generation(choice, answer, score, own_ids, prompt_ids, usage, tools)
        for choice, score, own_ids, usage in zip(choices, scores, ids, usages, strict=True)
    ]


def in_order(choices: Sequence[Choice]) -> list[Choice]:
    """Choices by their index."""
    return sorted(choices, key=lambda choice: choice.index or 0)


def _generation(
    choice: Choice,
    answer: ChatCompletion,
    logprobs: tuple[TokenLogprob, ...] | None,
    token_ids: tuple[int, ...] | None,
    prompt_token_ids: tuple[int, ...] | None,
    usage: Usage,
    tools: Sequence[ToolDefinition],
) -> Generation:
    message = choice.message
    extra = message.model_extra or {}
    calls, custom = _tool_calls(message.tool_calls or (), tools)
    metadata: dict[str, Any] = {}
    if custom:
        metadata[CUSTOM_CALLS] = custom
    if answer.id:
        metadata["id"] = answer.id
    if answer.system_fingerprint:
        metadata["system_fingerprint"] = answer.system_fingerprint
    finish = _FINISH.get(str(choice.finish_reason), FinishReason.UNKNOWN)
    if finish is FinishReason.UNKNOWN:
        metadata["finish_reason"] = choice.finish_reason
    if calls and finish is FinishReason.STOP:
        finish = FinishReason.TOOL_CALLS  # so some servers end a call of a named tool
    if message.refusal:
        metadata["refusal"] = message.refusal
        finish = FinishReason.CONTENT_FILTER
    return Generation(
        text=message.content or "",
        tool_calls=calls,
        finish_reason=finish,
        usage=usage,
        prompt_token_ids=prompt_token_ids,
        completion_token_ids=token_ids,
        logprobs=logprobs,
        reasoning=extra.get("reasoning_content") or extra.get("reasoning") or None,
        model=answer.model or "",
        metadata=metadata,
    )


def _tool_calls(
    calls: Sequence[Any], tools: Sequence[ToolDefinition]
) -> tuple[tuple[ToolCall, ...], dict[str, str]]:
    """The calls; and those of custom tools, by id, with the argument that their free text is."""
    parsed, custom = [], {}
    for number, call in enumerate(calls):
        identity = str(call.id or f"call_{number}")
        free = getattr(call, "custom", None)
        if free is not None:
            made, custom[identity] = call_of(free, identity, tools)
            parsed.append(made)
            continue
        function = getattr(call, "function", None)
        name = str(getattr(function, "name", "") or "")
        arguments = getattr(function, "arguments", None) or ""
        if isinstance(arguments, Mapping):  # against the API, some servers send the object itself
            parsed.append(ToolCall(name, dict(arguments), identity))
        else:
            parsed.append(ToolCall.from_json(name, str(arguments), identity))
    return tuple(parsed), custom


def _logprobs(choice: Choice, wanted: int) -> tuple[TokenLogprob, ...] | None:
    content = choice.logprobs.content if choice.logprobs is not None else None
    if content is None:
        return None
    return tuple(
        TokenLogprob(
            each.token,
            each.logprob,
            (each.model_extra or {}).get("id"),  # llama.cpp tells it
            tuple((top.token, top.logprob) for top in (each.top_logprobs or ())[:wanted]),
        )
        for each in content
    )


def _cost(extra: Mapping[str, Any] | None) -> float | None:
    cost = (extra or {}).get("cost")  # US dollars; OpenRouter tells it
    return float(cost) if isinstance(cost, int | float) else None


def _token_ids(extra: Mapping[str, Any] | None, name: str) -> tuple[int, ...] | None:
    ids = (extra or {}).get(name)
    return tuple(ids) if isinstance(ids, list) else None


def _usages(answer: ChatCompletion, lengths: Sequence[int | None]) -> list[Usage]:
    """One usage for each choice; the prompt is counted in the first alone. Of several choices the API tells the
    tokens together: each is given its own number where known, else an equal share."""
    usage = answer.usage
    if usage is None:
        return [Usage(completion_tokens=length or 0) for length in lengths]
    prompt_details, completion_details = usage.prompt_tokens_details, usage.completion_tokens_details
    first = Usage(
        prompt_tokens=usage.prompt_tokens or 0,
        cached_tokens=(prompt_details.cached_tokens if prompt_details else None) or 0,
        reasoning_tokens=(completion_details.reasoning_tokens if completion_details else None) or 0,
        cost=_cost(usage.model_extra),
    )
    total, count = usage.completion_tokens or 0, len(lengths)
    if count == 1:
        shares = [total]
    elif None not in lengths:
        shares = [length or 0 for length in lengths]
    else:
        shares = [total // count + (1 if number < total % count else 0) for number in range(count)]
    return [
        (first if number == 0 else Usage()) + Usage(completion_tokens=share) for number, share in enumerate(shares)
    ]
