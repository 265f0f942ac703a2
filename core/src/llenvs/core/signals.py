"""Reward signals: named, typed, weighted; numbers, words, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from llenvs.core.encoding import record, record_enum


@record_enum
class RewardType(StrEnum):
    """What a signal judges."""

    OUTCOME = "outcome"
    """the result of the whole episode"""
    STEP = "step"
    """one step of it"""
    FORMAT = "format"
    """the form of the response"""
    PROCESS = "process"
    """the way to the result (a segment of reasoning, the use of tools)"""


@record
@dataclass(frozen=True, slots=True)
class Signal:
    """One reward signal.

    Attributes:
        name: unique in its bundle.
        reward_type: what it judges.
        reward: a number, or None for a signal that is words alone (or could not be computed).
        feedback: words for the model or the reader, or None.
        weight: its share in `SignalBundle.total`; 0 means reported, not counted.
        metadata: anything else, e.g. ``{"error": "..."}`` when the scorer failed.

    A reward or weight of another number type (bool, numpy) becomes a float, a reward type given as its text
    ("outcome") the member.
    """

    name: str
    reward_type: RewardType = RewardType.OUTCOME
    reward: float | None = None
    feedback: str | None = None
    weight: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reward is not None and type(self.reward) is not float:
            object.__setattr__(self, "reward", _number("reward", self.name, self.reward))
        if type(self.weight) is not float:
            object.__setattr__(self, "weight", _number("weight", self.name, self.weight))
        if type(self.reward_type) is not RewardType:
            object.__setattr__(self, "reward_type", RewardType(self.reward_type))


def _number(what: str, signal: str, value: Any) -> float:
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} of signal {signal!r} must be a number, got {type(value).__name__}: {value!r}")
    return float(value)


@record
@dataclass(frozen=True, slots=True)
class SignalBundle:
    """The signals of one step, in order, names unique."""

    signals: tuple[Signal, ...] = ()

    def __post_init__(self) -> None:
        if type(self.signals) is not tuple:
            object.__setattr__(self, "signals", tuple(self.signals))
        if len(self.signals) > 1 and len({s.name for s in self.signals}) != len(self.signals):
            names = [s.name for s in self.signals]
            twice = sorted({n for n in names if names.count(n) > 1})
            raise ValueError(f"signal names must be unique in a bundle; twice: {', '.join(twice)}")

    @property
    def total(self) -> float:
        """Sum of weight * reward over the signals that have a number; 0.0 when none has."""
        return float(sum([s.weight * s.reward for s in self.signals if s.reward is not None and s.weight != 0]))

    def by_name(self, name: str) -> Signal | None:
        """The signal of this name, or None."""
        for signal in self.signals:
            if signal.name == name:
                return signal
        return None

    def by_type(self, reward_type: RewardType) -> tuple[Signal, ...]:
        """The signals of one type, in order."""
        return tuple(s for s in self.signals if s.reward_type is reward_type)

    @property
    def feedback_texts(self) -> tuple[str, ...]:
        """The words of all signals that have some, in order."""
        return tuple(s.feedback for s in self.signals if s.feedback)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(s.name for s in self.signals)

    def __iter__(self) -> Iterator[Signal]:
        return iter(self.signals)

    def __len__(self) -> int:
        return len(self.signals)

    def __contains__(self, name: object) -> bool:
        return any(s.name == name for s in self.signals)

    def __getitem__(self, name: str) -> Signal:
        signal = self.by_name(name)
        if signal is None:
            raise KeyError(f"no signal {name!r}; there are: {', '.join(self.names) or 'none'}")
        return signal

    def extended(self, signals: Iterable[Signal]) -> SignalBundle:
        """A bundle with `signals` added at the end."""
        return SignalBundle(self.signals + tuple(signals))
