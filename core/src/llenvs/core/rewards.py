"""Reward functions: signals computed from a step, added to an environment's own."""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from llenvs.core.errors import InvalidOption, UnknownName, UnknownOption
from llenvs.core.signals import RewardType, Signal

if TYPE_CHECKING:
    from llenvs.core.action import Action
    from llenvs.core.state import State


class RewardFunction(ABC):
    """Judges one step: called with the state, the action taken in it and the state it led to.

    Attributes: `name` (unique among an environment's signals), `reward_type`, `weight` in the total.
    """

    def __init__(self, name: str, reward_type: RewardType, weight: float = 1.0) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidOption("extra_rewards.name", name, "must be a non-empty name")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
            raise InvalidOption("extra_rewards.weight", weight, "must be a finite number")
        self.name = name
        self.reward_type = reward_type
        self.weight = float(weight)

    @abstractmethod
    def __call__(self, state: State[Any], action: Action, next_state: State[Any]) -> Signal:
        """The signal for this step. Must depend on its arguments alone."""

    def _signal(self, reward: float | None, feedback: str | None = None) -> Signal:
        return Signal(self.name, self.reward_type, reward, feedback, self.weight)


class FormatReward(RewardFunction):
    """1.0 if the response has the wanted form, else 0.0 with feedback that says what is missing.

    The form is either a tag pair or a regular expression:

    - `tag`: exactly one complete ``<tag>...</tag>`` with something in it;
    - `pattern`: ``re.search`` finds it (flags: DOTALL); give ``\\A...\\Z`` for the whole response.
    """

    def __init__(
        self,
        tag: str | None = None,
        pattern: str | None = None,
        *,
        name: str = "format",
        weight: float = 1.0,
    ) -> None:
        super().__init__(name, RewardType.FORMAT, weight)
        if tag is not None and pattern is not None:
            raise InvalidOption("extra_rewards.format", [tag, pattern], "takes tag or pattern, not both")
        for key, value in (("tag", tag), ("pattern", pattern)):
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidOption(f"extra_rewards.{key}", value, "must be a text that is not empty")
        self.tag = "answer" if tag is None and pattern is None else tag
        self.pattern = pattern
        if self.tag is not None:
            self._wanted = f"one <{self.tag}>...</{self.tag}> with the answer in it"
        else:
            self._wanted = f"text that matches {pattern!r}"
            try:
                self._regex = re.compile(pattern or "", re.DOTALL)
            except re.error as error:
                raise InvalidOption(
                    "extra_rewards.pattern", pattern, f"is no regular expression ({error})"
                ) from None

    def __call__(self, state: State[Any], action: Action, next_state: State[Any]) -> Signal:
        """See the class."""
        if self._holds(action.text):
            return self._signal(1.0)
        return self._signal(0.0, f"The response must contain {self._wanted}.")

    def _holds(self, text: str) -> bool:
        if self.tag is None:
            return self._regex.search(text) is not None
        opening, closing = f"<{self.tag}>", f"</{self.tag}>"
        if text.count(opening) != 1 or text.count(closing) != 1:
            return False
        start = text.index(opening) + len(opening)
        return bool(text[start : max(start, text.find(closing))].strip()) and text.find(closing) >= start


class LengthReward(RewardFunction):
    """1.0 up to `max_characters` of response text, then falling linearly to 0.0 at twice as many."""

    def __init__(self, max_characters: int = 2000, *, name: str = "length", weight: float = 1.0) -> None:
        super().__init__(name, RewardType.FORMAT, weight)
        if isinstance(max_characters, bool) or not isinstance(max_characters, int) or max_characters < 1:
            raise InvalidOption("extra_rewards.max_characters", max_characters, "must be a positive integer")
        self.max_characters = max_characters

    def __call__(self, state: State[Any], action: Action, next_state: State[Any]) -> Signal:
        """See the class."""
        excess = len(action.text) - self.max_characters
        return self._signal(min(1.0, max(0.0, 1.0 - excess / self.max_characters)))


class CallableReward(RewardFunction):
    """Any ``function(state, action, next_state) -> float | (float, feedback) | Signal`` as a reward function."""

    def __init__(
        self,
        function: Callable[[State[Any], Action, State[Any]], float | tuple[float, str] | Signal],
        *,
        name: str | None = None,
        reward_type: RewardType = RewardType.OUTCOME,
        weight: float = 1.0,
    ) -> None:
        super().__init__(name or str(getattr(function, "__name__", "reward")), reward_type, weight)
        self.function = function

    def __call__(self, state: State[Any], action: Action, next_state: State[Any]) -> Signal:
        """See the class."""
        value = self.function(state, action, next_state)
        if isinstance(value, Signal):
            return value
        reward, feedback = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        if not isinstance(reward, Real) or not (feedback is None or isinstance(feedback, str)):
            raise InvalidOption(
                f"extra_rewards.{self.name}", value, "must return a number, (number, feedback) or a Signal"
            )
        return self._signal(float(reward), feedback)


REWARD_FUNCTIONS: dict[str, type[RewardFunction]] = {"format": FormatReward, "length": LengthReward}
"""Names that a configuration may use."""


class UnknownRewardFunction(UnknownName):
    """No reward function of this name exists."""

    kind = "reward function"


def make_reward_functions(specs: Any) -> tuple[RewardFunction, ...]:
    """Reward functions from a configuration.

    `specs` is None, one of these or a list of them: a name ("format"), a mapping
    ``{"type": "format", "tag": "answer", "weight": 0.1}``, a callable ``(state, action, next_state) -> float``, or
    a `RewardFunction` (kept).

    Raises:
        InvalidOption, UnknownRewardFunction: naming the field and the valid values.
    """
    if specs is None:
        return ()
    if isinstance(specs, str | Mapping) or callable(specs):
        specs = [specs]
    if not isinstance(specs, Iterable):
        valid = ", ".join(REWARD_FUNCTIONS)
        raise InvalidOption("extra_rewards", specs, "must be a list of reward functions", valid=valid)
    functions = tuple(_make_one(spec) for spec in specs)
    names = [f.name for f in functions]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InvalidOption("extra_rewards", names, f"names must be unique; {twice[0]!r} occurs twice")
    return functions


def _make_one(spec: Any) -> RewardFunction:
    if isinstance(spec, RewardFunction):
        return spec
    if isinstance(spec, type) and issubclass(spec, RewardFunction):
        return _configured(spec, {}, spec.__name__)
    if isinstance(spec, str):
        spec = {"type": spec}
    if isinstance(spec, Mapping):
        options = dict(spec)
        if "type" not in options:
            raise InvalidOption("extra_rewards", spec, "needs a 'type'", valid=", ".join(REWARD_FUNCTIONS))
        kind = str(options.pop("type"))
        if kind not in REWARD_FUNCTIONS:
            raise UnknownRewardFunction(kind, sorted(REWARD_FUNCTIONS))
        return _configured(REWARD_FUNCTIONS[kind], options, kind)
    if callable(spec):
        return CallableReward(spec)
    raise InvalidOption(
        "extra_rewards",
        spec,
        "must be a name, a mapping with 'type', or a callable",
        valid=", ".join(REWARD_FUNCTIONS),
    )


def _configured(cls: type[RewardFunction], options: Mapping[str, Any], kind: str) -> RewardFunction:
    parameters = [name for name in inspect.signature(cls).parameters if name != "self"]
    for key in options:
        if key not in parameters:
            raise UnknownOption(str(key), parameters, f"of the reward function {kind!r}")
    try:
        return cls(**options)
    except TypeError as error:
        raise InvalidOption(f"extra_rewards.{kind}", dict(options), str(error)) from None
