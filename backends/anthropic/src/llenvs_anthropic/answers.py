"""From a message of the API to a generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llenvs.core.generation import FinishReason, Generation, Usage
from llenvs.core.tools import ToolCall
from llenvs.inference.errors import ProviderFailed
from llenvs_anthropic.messages import RAW_CONTENT

if TYPE_CHECKING:
    from anthropic.types import Message

_FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.CONTENT_FILTER,
}
_PLAIN = {"text", "tool_use"}
_CUT_OFF = "The answer was cut off inside this call, so its arguments are not known."


def message_of(answer: object, backend: str) -> Message:
    """What the SDK returned, when it is a message.

    Raises:
        ProviderFailed: it is not.
    """
    from anthropic.types import Message

    if not isinstance(answer, Message) or not isinstance(answer.content, list):
        raise ProviderFailed(backend, f"the server's answer is no message: {str(answer)[:200]!r}")
    return answer


def raw_blocks(message: Message) -> list[dict[str, Any]]:
    """The content blocks as they came."""
    return [block.model_dump(mode="json", exclude_unset=True, warnings=False) for block in message.content]


def generation_of(
    message: Message, blocks: Sequence[Mapping[str, Any]], usage: Usage, *, prefix: str, echoes_prefix: bool
) -> Generation:
    """The generation that a message is.

    Args:
        message: the last one, when the answer came in several.
        blocks: content of all of them.
        usage: of all of them.
        prefix: with which the answer had to begin.
        echoes_prefix: whether the server repeats it.
    """
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    if prefix and echoes_prefix:
        text = text.removeprefix(prefix)
    thoughts = [str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"]
    stop = str(message.stop_reason)
    finish = _FINISH.get(stop, FinishReason.UNKNOWN)
    metadata: dict[str, Any] = {}
    if message.id:
        metadata["id"] = message.id
    if any(block.get("type") not in _PLAIN for block in blocks):
        metadata[RAW_CONTENT] = [dict(block) for block in blocks]
    if message.stop_sequence:
        metadata["stop"] = message.stop_sequence
    if stop == "model_context_window_exceeded":
        metadata["context_full"] = True
    if stop == "refusal":
        details = message.stop_details
        metadata["refusal"] = (details.category if details is not None else None) or "refusal"
    if finish is FinishReason.UNKNOWN:
        metadata["finish_reason"] = message.stop_reason
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    if calls and finish is FinishReason.LENGTH and blocks[-1].get("type") == "tool_use":
        last = calls[-1]
        calls[-1] = ToolCall(last.name, last.arguments, last.id, _CUT_OFF, str(blocks[-1].get("input")))
    return Generation(
        text=text,
        tool_calls=tuple(calls),
        finish_reason=finish,
        usage=usage,
        reasoning="\n\n".join(thought for thought in thoughts if thought) or None,
        model=message.model or "",
        metadata=metadata,
    )


def usage_of(message: Message) -> Usage:
    """Tokens of one answer. Those read from and written to the prompt cache are not among ``input_tokens``."""
    usage = message.usage
    if usage is None:
        return Usage()
    read = usage.cache_read_input_tokens or 0
    details = usage.output_tokens_details
    return Usage(
        prompt_tokens=(usage.input_tokens or 0) + read + (usage.cache_creation_input_tokens or 0),
        completion_tokens=usage.output_tokens or 0,
        cached_tokens=read,
        reasoning_tokens=int(getattr(details, "thinking_tokens", 0) or 0) if details is not None else 0,
    )


def _call(block: Mapping[str, Any]) -> ToolCall:
    name, identity, arguments = str(block.get("name") or ""), str(block.get("id") or ""), block.get("input")
    if isinstance(arguments, Mapping):
        return ToolCall(name, dict(arguments), identity)
    if arguments is None:
        return ToolCall(name, {}, identity)
    return ToolCall.from_json(name, str(arguments), identity)
