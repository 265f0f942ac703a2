"""How tools were used in an episode: a tally that travels in the state's metadata, and rewards made from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llenvs.core.encoding import canonical, record
from llenvs.core.errors import InvalidOption
from llenvs.core.rewards import REWARD_FUNCTIONS, RewardFunction
from llenvs.core.signals import RewardType, Signal
from llenvs.core.tools.call import ToolCall, ToolResult

if TYPE_CHECKING:
    from llenvs.core.action import Action
    from llenvs.core.state import State

INFO_KEY = "tool_use"
"""Where a state's ``metadata.info`` holds its `ToolUse`."""


@record
@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tool calls of an episode so far.

    Attributes:
        calls: all of them.
        valid: those of a tool that exists with arguments that fit.
        useful: those that succeeded and brought something new.
        seen: digests of the calls with their results, to tell what is new.
    """

    calls: int = 0
    valid: int = 0
    useful: int = 0
    seen: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: State[Any]) -> ToolUse:
        """That of the episode that led to `state`."""
        use = state.metadata.info.get(INFO_KEY)
        return use if isinstance(use, ToolUse) else cls()

    def after(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> ToolUse:
        """The tally after the calls of one more action."""
        seen = list(self.seen)
        useful = 0
        for call, result in zip(calls, results, strict=True):
            digest = _digest(call, result)
            useful += result.ok and digest not in seen
            if digest not in seen:
                seen.append(digest)
        valid = sum(result.is_valid_call for result in results)
        return ToolUse(self.calls + len(results), self.valid + valid, self.useful + useful, tuple(seen))

    @property
    def info(self) -> Mapping[str, Any]:
        """For ``metadata.info``."""
        return {INFO_KEY: self}


def _digest(call: ToolCall, result: ToolResult) -> str:
    text = canonical([call.name, dict(call.arguments), result.content])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class ToolValidityReward(RewardFunction):
    """Share of an episode's tool calls that named an existing tool and gave it fitting arguments, in [0, 1].

    Given with the last step of the episode; None before it, and when no tool was called.
    """

    def __init__(self, *, name: str = "tool_validity", weight: float = 1.0) -> None:
        super().__init__(name, RewardType.PROCESS, weight)

    def __call__(self, state: State[Any], action: Action, next_state: State[Any]) -> Signal:
        """See the class."""
        use = ToolUse.of(next_state)
        if not next_state.is_terminal or use.calls == 0:
            return self._signal(None)
        wrong = use.calls - use.valid
        return self._signal(
            use.valid / use.calls, f"{wrong} of {use.calls} tool calls were invalid." if wrong else None
        )


class ToolEfficiencyReward(RewardFunction):
    """How few of an episode's tool calls were wasted, in [0, 1].

    Without `expected_calls` the share of calls that succeeded and were no repetition (same call, same result) of
    an earlier one. With it ``min(1, expected_calls / calls)``: 1.0 up to so many calls, less with each one more.
    Given with the last step of the episode; None before it, and when no tool was called.
    """

    def __init__(
        self, expected_calls: int | None = None, *, name: str = "tool_efficiency", weight: float = 1.0
    ) -> None:
        super().__init__(name, RewardType.PROCESS, weight)
        if expected_calls is not None and (
            isinstance(expected_calls, bool) or not isinstance(expected_calls, int) or expected_calls < 1
        ):
            raise InvalidOption(
                "extra_rewards.expected_calls", expected_calls, "must be a positive integer, or None"
            )
        self.expected_calls = expected_calls

    def __call__(self, state: State[Any], action: Action, next_state: State[Any]) -> Signal:
        """See the class."""
        use = ToolUse.of(next_state)
        if not next_state.is_terminal or use.calls == 0:
            return self._signal(None)
        if self.expected_calls is not None:
            return self._signal(min(1.0, self.expected_calls / use.calls))
        wasted = use.calls - use.useful
        words = f"{wasted} of {use.calls} tool calls failed or repeated an earlier one." if wasted else None
        return self._signal(use.useful / use.calls, words)


REWARD_FUNCTIONS["tool_validity"] = ToolValidityReward
REWARD_FUNCTIONS["tool_efficiency"] = ToolEfficiencyReward


def monitored(functions: Sequence[RewardFunction]) -> tuple[RewardFunction, ...]:
    """`functions`, and before them each reward on tool use that is not among them, with weight 0."""
    kinds = (ToolValidityReward, ToolEfficiencyReward)
    absent = [kind for kind in kinds if not any(isinstance(function, kind) for function in functions)]
    return (*(kind(weight=0.0) for kind in absent), *functions)
