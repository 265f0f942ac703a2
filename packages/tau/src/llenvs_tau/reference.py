"""The reference solution of a task as an episode to be played: what the agent does, what the user replies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.tools import ToolCall
from llenvs_tau.domain import STOP
from llenvs_tau.protocol import turn_after

_OPENING = "Hello, I need help."
_HAND_OVER = "Please do the next steps on your side."
_DONE = "That is done."


@dataclass(frozen=True, slots=True)
class ReferenceEpisode:
    """A way to solve a task that the upstream grades with 1.0 where its own data allow it.

    Attributes:
        actions: what the agent does; the last one says what the user is to be told.
        user_script: what the user replies meanwhile (see the option of this name); empty in solo mode.
    """

    actions: tuple[Action, ...]
    user_script: tuple[Any, ...]


def reference_episode(task: Any, *, solo: bool, tell: bool = True) -> ReferenceEpisode:
    """The upstream's reference actions of `task`, in order, and at the end what is to be communicated.

    Args:
        task: the upstream's task.
        solo: the agent takes the user's actions too, and ends with ``done``.
        tell: whether to communicate it.
    """
    criteria = task.evaluation_criteria
    steps = list((criteria and criteria.actions) or ())
    info = list((criteria and criteria.communicate_info) or ()) if tell else []
    actions: list[Action] = []
    history = list((task.initial_state and task.initial_state.message_history) or ())
    script: list[Any] = [_OPENING] if turn_after(history) == "user" else []
    users_turn = False
    for number, step in enumerate(steps):
        by_user = step.requestor == "user" and not solo
        if by_user:
            if not users_turn:
                actions.append(Action(_HAND_OVER))
            script.append({"tool_calls": [{"name": step.name, "arguments": step.arguments}]})
        else:
            if users_turn:
                script.append(_DONE)
            actions.append(Action(tool_calls=(ToolCall(step.name, step.arguments, f"reference_{number}"),)))
        users_turn = by_user
    if users_turn:
        script.append(_DONE)
    if solo:
        if info and actions:  # there is nobody to talk to, but text beside a call counts
            actions[-1] = replace(actions[-1], text="\n".join(info))
        return ReferenceEpisode((*actions, Action(tool_calls=(ToolCall("done", {}, "reference_done"),))), ())
    actions.append(Action("\n".join(info) or "Goodbye."))
    return ReferenceEpisode(tuple(actions), (*script, STOP))
