"""What the policy is shown, from the messages of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.action import Action
from llenvs.core.observation import Observation
from llenvs.core.tools import ToolResult
from llenvs.core.tools.call import ToolStatus
from llenvs_verifiers_v1.messages import after_the_reply, chat_messages, text_of, tool_definitions


def shown(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    statuses: Mapping[str, ToolStatus] | None = None,
    action: Action | None = None,
) -> Observation:
    """The observation: the whole chat, and as prompt what is new in it.

    Args:
        messages: of the request.
        tools: of the request.
        statuses: how tool calls ended, by their ids.
        action: the policy's last, for the order of its calls.
    """
    chat = chat_messages(messages)
    new = after_the_reply(chat)
    order = [call.id for call in action.tool_calls] if action is not None else []
    results = [
        ToolResult(
            message.tool_call_id or "",
            message.content,
            (statuses or {}).get(message.tool_call_id or "", ToolStatus.SUCCESS),
            message.name or "",
        )
        for message in new
        if message.role == "tool"
    ]
    results.sort(key=lambda result: order.index(result.call_id) if result.call_id in order else len(order))
    said = [message for message in new if message.role not in ("tool", "system")]
    return Observation(
        text_of(said),
        messages=chat,
        images=tuple(image for message in said for image in message.images),
        tool_results=tuple(results),
        available_tools=tool_definitions(tools),
    )


def truth_of(data: Any) -> dict[str, Any]:
    """The ground truth of a task, where it stands under the usual name."""
    answer = getattr(data, "answer", None)
    return {"answer": answer if isinstance(answer, str | int | float | bool) else None}
