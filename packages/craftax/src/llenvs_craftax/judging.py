"""What a state is worth: achievements, the end of the game, and the signals of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from llenvs.core.signals import RewardType, Signal
from llenvs_craftax.upstream import Upstream

Ending = Literal["died", "lava", "won", "time"]
_BOSS_BEATEN = 8  # num_levels - 1 of the upstream's parameters


def achieved(upstream: Upstream, record: Any) -> tuple[str, ...]:
    """Names of the achievements unlocked so far, in the upstream's order."""
    flags = record["achievements"].tolist()
    return tuple([name for name, flag in zip(upstream.achievements, flags, strict=True) if flag])


def ending(upstream: Upstream, record: Any) -> Ending:
    """Why the upstream ended the episode in this state. It does not say itself.

    "time" stands for its limit of timesteps, which is a truncation; all others end the game.
    """
    if upstream.variant == "classic":
        row, column = record["player_position"].tolist()
        if upstream.blocks[record["map"][row, column]] == "lava":
            return "lava"
    elif record["boss_progress"] >= _BOSS_BEATEN:
        return "won"
    return "died" if record["player_health"] <= 0 else "time"


class Judge:
    """Makes the signals of steps; see `CraftaxEnvironment` for what they are."""

    def __init__(self, upstream: Upstream, goal: str | None) -> None:
        self._goal = goal
        self._classic = upstream.variant == "classic"
        self._weights = dict(zip(upstream.achievements, upstream.weights, strict=True))
        self._gained = {name: _achievement(name, 1.0, weight) for name, weight in self._weights.items()}
        self._not_gained = {name: _achievement(name, 0.0, weight) for name, weight in self._weights.items()}

    def step(self, reward: float, unlocked: Sequence[str]) -> Iterator[Signal]:
        """The signals of a step that is not the last."""
        yield self._health(reward, unlocked)
        for name in unlocked:
            yield self._gained[name]

    def last(self, reward: float, unlocked: Sequence[str], achieved: Sequence[str]) -> Iterator[Signal]:
        """The signals of a last step, after which the achievements `achieved` are unlocked."""
        yield self._health(reward, unlocked)
        for name in self._weights:
            yield self._gained[name] if name in unlocked else self._not_gained[name]
        share = sum(self._weights[name] for name in achieved) / sum(self._weights.values())
        yield Signal("achieved", RewardType.OUTCOME, share, None, 0.0)
        if self._goal is not None:
            yield Signal("goal", RewardType.OUTCOME, float(self._goal in achieved), None, 0.0)
        if self._classic:
            yield Signal("score", RewardType.OUTCOME, self._score(len(achieved)), None, 0.0)

    def _health(self, reward: float, unlocked: Sequence[str]) -> Signal:
        # What is left of the reward is exact: the weights are small integers, and a float32 has fewer digits than
        # a float. So the total of the signals is the upstream's reward again.
        return Signal("health", RewardType.STEP, reward - sum(self._weights[name] for name in unlocked))

    def _score(self, count: int) -> float:
        """Geometric mean of 1 + success in percent, less 1 (Hafner, Crafter, 2021), of this one episode."""
        return math.exp(count * math.log(101.0) / len(self._weights)) - 1.0


def _achievement(name: str, reward: float, weight: float) -> Signal:
    return Signal(name, RewardType.STEP, reward, None, weight)
