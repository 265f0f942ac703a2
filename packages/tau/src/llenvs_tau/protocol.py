"""How a conversation goes on: whose turn it is and when it ends, as in the upstream's orchestrator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Role = Literal["agent", "user", "environment"]

USER_STOP = "user_stop"
AGENT_STOP = "agent_stop"
AGENT_ERROR = "agent_error"
MAX_STEPS = "max_steps"
TOO_MANY_ERRORS = "too_many_errors"
LIMITS = frozenset({MAX_STEPS, TOO_MANY_ERRORS})
"""Ends that are limits, not decisions."""


@dataclass
class Dialogue:
    """A conversation as far as it went.

    Attributes:
        messages: the upstream's messages in order; each is never changed once it is in.
        turn: who acts next.
        steps: messages that were sent since the start, all results of a message's tool calls together being one.
        errors: tool calls that failed.
        replies: messages of the user since the start.
        actions: actions of the agent since the start.
        reason: why it ended, in the upstream's words; None while it goes on.
    """

    messages: list[Any] = field(default_factory=list)
    turn: Role = "user"
    steps: int = 0
    errors: int = 0
    replies: int = 0
    actions: int = 0
    reason: str | None = None

    def sent(self, *messages: Any, to: Role) -> None:
        """One message, or the results of one message's tool calls, went to `to`."""
        self.messages += messages
        self.turn = to
        self.steps += 1

    def check_limits(self, max_steps: int, max_errors: int) -> None:
        """End at the upstream's limits, which also take the place of another end. Not before tools were run."""
        if self.turn == "environment":
            return
        if self.steps >= max_steps:
            self.reason = MAX_STEPS
        if self.errors >= max_errors:
            self.reason = TOO_MANY_ERRORS

    def copy(self) -> Dialogue:
        """One that goes on by itself."""
        return replace(self, messages=list(self.messages))


def turn_after(messages: list[Any]) -> Role:
    """Whose turn it is after the messages that a task begins with; the user's when there are none."""
    if not messages:
        return "user"
    last = messages[-1]
    if last.role == "tool":
        return "agent" if last.requestor == "assistant" else "user"
    if last.is_tool_call():
        return "environment"
    return "user" if last.role == "assistant" else "agent"


def heard_by_user(message: Any) -> bool:
    """Whether a message reaches the user."""
    if message.role == "tool":
        return bool(message.requestor == "user")
    return bool(message.role == "user" or not message.is_tool_call())


def heard_by_agent(message: Any) -> bool:
    """Whether a message reaches the agent."""
    if message.role == "tool":
        return bool(message.requestor == "assistant")
    return bool(message.role == "assistant" or not message.is_tool_call())
