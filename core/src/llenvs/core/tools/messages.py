"""Calls and results as chat messages, in the form that chat APIs demand."""

from __future__ import annotations

from collections.abc import Sequence

from llenvs.core.action import Action
from llenvs.core.message import ChatMessage
from llenvs.core.tools.call import ToolResult


def turn_messages(action: Action, results: Sequence[ToolResult]) -> tuple[ChatMessage, ...]:
    """What `action` and the results of its calls add to a chat.

    One assistant message, and after it one tool message for each call, in the order of the calls and with their
    ids: chat APIs refuse a call that is not answered, and an answer to a call that was not made.

    Raises:
        ValueError: results and calls do not match.
    """
    by_id = {result.call_id: result for result in results}
    wanted = [call.id for call in action.tool_calls]
    if len(by_id) != len(results) or sorted(by_id) != sorted(wanted):
        raise ValueError(f"results for {sorted(by_id)} do not match the calls {sorted(wanted)}")
    answers = (
        ChatMessage("tool", by_id[call.id].content, tool_call_id=call.id, name=call.name)
        for call in action.tool_calls
    )
    return (ChatMessage.assistant(action.text, action.tool_calls), *answers)
