"""What the signals of an episode's steps amount to."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

from llenvs.core.environment import EnvironmentSpec
from llenvs.core.errors import LLEnvsError
from llenvs.core.signals import Signal, SignalBundle


class ScorerFailed(LLEnvsError):
    """An environment gave a reward that is no finite number, or none where its success depends on it."""


class Outcome(NamedTuple):
    """Success, sums and words of the signals of all steps.

    Attributes:
        success: whether the success signal of some step reached the threshold; None when the environment declares
            no success. An episode that ended without the signal did not succeed.
        signals: per signal the sum of its finite numbers over the steps.
        step_rewards: the total of each step.
        feedback: the words of all signals, in order.
        missing: the first signal that counts and could not be computed, by its own words.
        failure: why there is no success to speak of: a reward is not finite, or the last success signal has no
            number. Then `success` is None.
    """

    success: bool | None
    signals: dict[str, float]
    step_rewards: tuple[float, ...]
    feedback: tuple[str, ...]
    missing: Signal | None = None
    failure: ScorerFailed | None = None

    @classmethod
    def of(cls, spec: EnvironmentSpec, rewards: Iterable[SignalBundle]) -> Outcome:
        """The outcome of the steps with these rewards, in order."""
        declared = spec.success_signal
        reached = False
        last = missing = failure = None
        sums: dict[str, float] = {}
        totals: list[float] = []
        feedback: list[str] = []
        for bundle in rewards:
            last = None
            for signal in bundle.signals:
                name, reward = signal.name, signal.reward
                if name == declared:
                    last = signal
                if signal.feedback:
                    feedback.append(signal.feedback)
                if reward is None:
                    if missing is None and signal.weight and "error" in signal.metadata:
                        missing = signal
                elif isfinite(reward):
                    sums[name] = sums[name] + reward if name in sums else reward
            if spec.is_success(bundle):
                reached = True
            total = bundle.total
            totals.append(total)
            if failure is None and not isfinite(total):
                failure = _not_finite(spec, len(totals) - 1, bundle)
        if failure is None and last is not None and not reached:
            failure = _without_number(spec, last)
        success = None if declared is None or failure is not None else reached
        return cls(success, sums, tuple(totals), tuple(feedback), missing, failure)


def _not_finite(spec: EnvironmentSpec, step: int, bundle: SignalBundle) -> ScorerFailed:
    for signal in bundle:
        if signal.reward is not None and not isfinite(signal.reward * signal.weight):
            return ScorerFailed(f"{spec.id}: signal {signal.name!r} of step {step} is {signal.reward}")
    return ScorerFailed(f"{spec.id}: the rewards of step {step} add up to more than a float can hold")


def _without_number(spec: EnvironmentSpec, signal: Signal) -> ScorerFailed | None:
    """The failure of a success signal that should have had a number; None when it has one."""
    if signal.reward is not None and isfinite(signal.reward):
        return None
    said = signal.metadata.get("error") or signal.feedback
    return ScorerFailed(f"{spec.id}: signal {signal.name!r} could not be computed" + (f": {said}" if said else ""))
