"""Signals: well formed, recomputable, and with the success that the spec declares."""

from __future__ import annotations

import math
from collections.abc import Iterator

from llenvs.core.signals import RewardType, Signal
from llenvs.testing.check import NotApplicable, check
from llenvs.testing.difference import difference
from llenvs.testing.subject import Subject


@check("signals are named, typed and finite, and ended episodes all have the same ones", needs=["episode"])
def signals(subject: Subject) -> Iterator[str]:
    """The signals of all steps."""
    at_the_end: dict[tuple[str, ...], str] = {}
    for walk in subject.walks:
        for step in walk.steps:
            where = f"task {walk.task_index}, step {step.state.metadata.step}"
            for signal in step.result.rewards:
                yield from (f"{where}: {problem}" for problem in _malformed(signal))
            if step.result.terminated:
                at_the_end.setdefault(tuple(sorted(step.result.rewards.names)), where)
    if len(at_the_end) > 1:
        shown = "; ".join(f"{where} has {', '.join(names) or 'none'}" for names, where in at_the_end.items())
        yield f"ended episodes have different signals: {shown}; one without a value has reward None"


def _malformed(signal: Signal) -> Iterator[str]:
    if not isinstance(signal.name, str) or not signal.name:
        yield f"a signal needs a name, has {signal.name!r}"
    if not isinstance(signal.reward_type, RewardType):
        yield f"signal {signal.name!r}: reward_type is {signal.reward_type!r}, no RewardType"
    for what, number in (("reward", signal.reward), ("weight", signal.weight)):
        if number is not None and not math.isfinite(number):
            yield f"signal {signal.name!r}: {what} is {number}; one that could not be computed is None"
    if signal.feedback is not None and not isinstance(signal.feedback, str):
        yield f"signal {signal.name!r}: feedback is {type(signal.feedback).__name__}, no str"


@check("compute_rewards gives the rewards of the step", needs=["step_repeatable"])
def rewards_recomputed(subject: Subject) -> Iterator[str]:
    """Every step of the walks."""
    for step in subject.steps:
        again = subject.environment.compute_rewards(step.state, step.action, step.result.next_state)
        differs = difference(step.result.rewards, again)
        if differs:
            yield f"step {step.state.metadata.step}: step() and compute_rewards() differ in {differs}"


@check("the signal that the spec declares as success is there when an episode ends", needs=["signals"])
def success(subject: Subject) -> Iterator[str]:
    """Every walk that the benchmark itself ended."""
    spec = subject.environment.spec
    if spec.success_signal is None:
        raise NotApplicable("the spec declares no success signal")
    if not math.isfinite(spec.success_threshold):
        yield f"spec.success_threshold must be a finite number, is {spec.success_threshold}"
    ended = [walk.steps[-1].result for walk in subject.walks if walk.steps and walk.steps[-1].result.terminated]
    if not ended:
        raise NotApplicable(f"no episode ended within {subject.max_steps} steps; give actions that end one")
    for result in ended:
        if spec.success_signal not in result.rewards:
            names = ", ".join(result.rewards.names) or "none"
            yield f"spec.success_signal is {spec.success_signal!r}, but the signals at the end are: {names}"
