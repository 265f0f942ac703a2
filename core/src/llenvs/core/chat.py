"""What observations add to a chat."""

from __future__ import annotations

from collections.abc import Sequence

from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.tools.call import ToolCall, ToolResult

_NO_RESULT = "(no result)"


def opening_text(observation: Observation) -> str:
    """The text of the first user message: the task, unless the prompt holds it, and the prompt."""
    task, text = observation.task, observation.prompt
    if task and task not in text:
        return f"{task}\n\n{text}" if text else task
    return text


def following_messages(calls: Sequence[ToolCall], observation: Observation) -> list[ChatMessage]:
    """The messages after an assistant message with `calls`.

    One tool message for each call, in the order of the calls and matched by id (chat APIs refuse unanswered ones);
    then a user message with the prompt, the images and results that belong to no call, left out when it would be
    empty after tool messages.
    """
    waiting = list(observation.tool_results)
    answers = []
    for call in calls:
        result = next((r for r in waiting if r.call_id == call.id), None)
        if result is not None:
            waiting.remove(result)
        content = _NO_RESULT if result is None else result.content
        answers.append(ChatMessage("tool", content, tool_call_id=call.id, name=call.name))
    text = "\n\n".join(_texts(waiting, observation.prompt))
    if text or observation.images or not answers:
        answers.append(ChatMessage.user(text, observation.images))
    return answers


def _texts(results: Sequence[ToolResult], prompt: str) -> list[str]:
    return [*(result.content for result in results), *([prompt] if prompt else [])]
