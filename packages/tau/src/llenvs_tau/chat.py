"""Between the upstream's messages and ours."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from llenvs.core.action import Action
from llenvs.core.errors import InvalidAction
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolCall, ToolResult, ToolStatus
from llenvs_tau.protocol import heard_by_agent
from llenvs_tau.users import Reply


def as_shown(messages: Sequence[Any]) -> list[ChatMessage]:
    """The messages that reach the agent, as chat messages."""
    shown = []
    names: dict[str, str] = {}
    for message in messages:
        if not heard_by_agent(message):
            continue
        if message.role == "tool":
            name = names.get(message.id, "")
            shown.append(ChatMessage("tool", message.content or "", tool_call_id=message.id, name=name))
        else:
            calls = tuple(ToolCall(call.name, call.arguments, call.id) for call in message.tool_calls or ())
            names.update({call.id: call.name for call in calls})
            shown.append(ChatMessage(message.role, message.content or "", tool_calls=calls))
    return shown


def agent_message(model: Any, action: Action, calls: Sequence[ToolCall]) -> Any:
    """What the agent says, as the upstream's message; `model` is the upstream's module of messages."""
    return model.AssistantMessage(
        role="assistant",
        content=clean(action.text) if action.text.strip() else None,
        tool_calls=[_call(model, call.id, call.name, call.arguments, "assistant") for call in calls] or None,
    )


def user_message(model: Any, reply: Reply) -> Any:
    """What the user says, as the upstream's message.

    Raises:
        InvalidAction: it is no reply; a recorded one may come from anywhere.
    """
    try:
        text, calls = reply["text"], [(id, name, arguments) for id, name, arguments in reply["calls"]]
        return model.UserMessage(
            role="user",
            content=clean(text) if text.strip() else None,
            tool_calls=[_call(model, id, name, arguments, "user") for id, name, arguments in calls] or None,
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InvalidAction(f"the state has a reply of the user that is none: {error}") from None


def _call(model: Any, id: str, name: str, arguments: Any, requestor: str) -> Any:
    return model.ToolCall(id=id, name=clean(name), arguments=deepcopy(dict(arguments)), requestor=requestor)


def clean(text: str) -> str:
    """`text` without half surrogate pairs, which the upstream's models refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def result_of(environment: Any, call: ToolCall, message: Any) -> ToolResult:
    """The answer to a call of the agent, told apart by what went wrong."""
    return ToolResult(call.id, message.content or "", _status(environment, call, message.error), call.name)


def _status(environment: Any, call: ToolCall, failed: bool) -> ToolStatus:
    if not failed:
        return ToolStatus.SUCCESS
    toolkits = [environment.tools, *([environment.user_tools] if environment.solo_mode else [])]
    tool = next((kit.tools[call.name] for kit in toolkits if kit is not None and kit.has_tool(call.name)), None)
    if tool is None:
        return ToolStatus.UNKNOWN_TOOL
    try:
        inspect.signature(tool).bind(**call.arguments)
    except TypeError:
        return ToolStatus.INVALID_ARGUMENTS
    return ToolStatus.ERROR
