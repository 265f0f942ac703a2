"""The upstream's rubrics as signals: one for each function, and failures that stay visible.

The upstream turns any exception in a reward function into 0.0. Its two methods that call such functions are
wrapped here, on each rubric object, to note scores and exceptions; what it computes stays as it is.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import verifiers.legacy as vf

from llenvs.core.signals import RewardType, Signal

TOTAL = "total_reward"
"""Name of the signal with the upstream's own reward; weight 0, since the functions' signals add up to it."""
STEP = "step_reward"
"""Name of the signal with the reward that an environment gave a turn; weight 0, since a rubric counts it."""

_SWALLOWED = ("Math verification failed", "Math verification hit hard timeout")  # what MathRubric says, giving 0


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a reward function for one rollout: its score, or why there is none."""

    name: str
    weight: float
    score: float | None
    error: str | None
    is_group: bool


class Record:
    """The calls of reward functions during one scoring, by the rollout (`id` of its state)."""

    def __init__(self) -> None:
        self.calls: dict[int, list[Called]] = {}
        self._times: dict[tuple[int, int, int], int] = {}

    def add(self, rubric: Any, func: Any, state: Any, score: Any, error: str | None, is_group: bool) -> None:
        """Note a call; a function that stands in a rubric twice has the weight of its turn."""
        key = id(state), id(rubric), id(func)
        turn = self._times.get(key, 0)
        self._times[key] = turn + 1
        places = [i for i, each in enumerate(rubric.funcs) if each is func]
        weight = float(rubric.weights[places[min(turn, len(places) - 1)]]) if places else 0.0
        name = str(getattr(func, "__name__", repr(func)))
        called = Called(name, weight, None if error else float(score), error, is_group)
        self.calls.setdefault(id(state), []).append(called)


_record: ContextVar[Record | None] = ContextVar("llenvs_verifiers_record", default=None)
_swallowed: ContextVar[list[str] | None] = ContextVar("llenvs_verifiers_swallowed", default=None)


def rubrics_of(rubric: Any) -> Iterator[Any]:
    """`rubric`, or the rubrics in it when it is a group."""
    if isinstance(rubric, vf.RubricGroup):
        for each in rubric.rubrics:
            yield from rubrics_of(each)
    else:
        yield rubric


def names_of(rubric: Any) -> tuple[str, ...]:
    """The names of the signals that the functions of `rubric` give, in order."""
    names = {TOTAL, STEP}
    functions = (func for each in rubrics_of(rubric) for func in each.funcs)
    return tuple(_unique(str(getattr(func, "__name__", repr(func))), names) for func in functions)


def with_all(signals: tuple[Signal, ...], names: Sequence[str]) -> tuple[Signal, ...]:
    """`signals`, and one without a number for each of `names` that is not among them: functions of the other
    environments of a group."""
    have = {signal.name for signal in signals}
    absent = dict.fromkeys(name for name in names if name not in have)
    return (*signals, *(Signal(name, RewardType.PROCESS, weight=0.0) for name in absent))


def watch(rubric: Any) -> None:
    """Note what the functions of `rubric` (all, when it is a group) give and raise."""
    for each in rubrics_of(rubric):
        if not hasattr(each, "_llenvs_watched"):
            each._llenvs_watched = True
            each._call_individual_reward_func = _watched_one(each, each._call_individual_reward_func)
            each._call_group_reward_func = _watched_group(each, each._call_group_reward_func)
            each.logger.addFilter(_note_swallowed)


async def score(env: Any, states: Sequence[Any]) -> list[tuple[Signal, ...]]:
    """Score finished rollouts of one task as the upstream's evaluation does, and say what each function gave.

    It scores the rollouts of a task as a group, be it of one; scoring one alone is another method of its rubrics,
    which adds up in another order and gives another last digit.

    Args:
        env: the environment of all of them (no group).
        states: the upstream's states.

    Returns:
        For each rollout a signal for each function, then `TOTAL`.
    """
    if not env.score_rollouts:
        return [() for _ in states]
    record = Record()
    token = _record.set(record)
    try:
        await env.rubric.score_group(list(states))
    finally:
        _record.reset(token)
    for state in states:
        await env.rubric.cleanup(state)
    rewards = [float(state["reward"]) for state in states]
    mean = sum(rewards) / len(rewards)
    return [
        _signals(record.calls.get(id(state), []), state, len(states), reward - mean)
        for state, reward in zip(states, rewards, strict=True)
    ]


def _signals(calls: list[Called], state: Any, size: int, advantage: float) -> tuple[Signal, ...]:
    reward = float(state["reward"])
    sum_of_calls = sum(call.weight * call.score for call in calls if call.score is not None)
    failed = [call for call in calls if call.error is not None and call.weight != 0]
    if not failed and not _close(sum_of_calls, reward):
        return _signals_of_own_scoring(state, reward)  # a rubric that computes its reward in its own way
    signals: list[Signal] = []
    names = {TOTAL, STEP}
    for call in calls:
        signal = _signal(call, _unique(call.name, names))
        if call.is_group:
            signal = replace(signal, metadata={**signal.metadata, "group_size": size})
        signals.append(signal)
    metadata: dict[str, Any] = {"advantage": advantage} if size > 1 else {}
    if failed:
        said = "; ".join(f"{call.name}: {call.error}" for call in failed)
        return (*signals, Signal(TOTAL, weight=0.0, metadata={**metadata, "error": said, "upstream": reward}))
    return (*signals, Signal(TOTAL, reward=reward, weight=0.0, metadata=metadata))


def _signals_of_own_scoring(state: Any, reward: float) -> tuple[Signal, ...]:
    names = {TOTAL, STEP}
    metrics = [
        Signal(_unique(str(name), names), RewardType.PROCESS, float(value), weight=0.0)
        for name, value in (state["metrics"] or {}).items()
    ]
    return (*metrics, Signal(_unique("reward", names), reward=reward), Signal(TOTAL, reward=reward, weight=0.0))


def _signal(call: Called, name: str) -> Signal:
    kind = RewardType.OUTCOME if call.weight else RewardType.PROCESS
    if call.name == "format_reward_func":  # what every parser of the upstream calls its own
        kind = RewardType.FORMAT
    if call.error is not None:
        return Signal(name, kind, None, weight=call.weight, metadata={"error": call.error})
    return Signal(name, kind, call.score, weight=call.weight)


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def _close(a: float, b: float) -> bool:
    """Whether sums of the same numbers in another order; NaN equals NaN."""
    return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0) or (a != a and b != b)


def _watched_one(rubric: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    async def watched(func: Any, state: Any) -> float:
        record = _record.get()
        if record is None:
            return float(await call(func, state))
        failures: list[str] = []
        token = _swallowed.set(failures)
        try:
            score = await call(_noting(func, failures, float), state)
        finally:
            _swallowed.reset(token)
        record.add(rubric, func, state, score, failures[0] if failures else None, is_group=False)
        return float(score)

    return watched


def _watched_group(rubric: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    async def watched(func: Any, states: list[Any]) -> list[float]:
        record = _record.get()
        if record is None:
            return list(await call(func, states))
        failures: list[str] = []

        def scores_of(value: Any) -> list[float]:
            scores = [float(each) for each in value]
            if len(scores) != len(states):
                raise ValueError(f"gave {len(scores)} scores for {len(states)} rollouts")
            return scores

        scores = await call(_noting(func, failures, scores_of), states)
        for state, score in zip(states, scores, strict=True):
            record.add(rubric, func, state, score, failures[0] if failures else None, is_group=True)
        return list(scores)

    return watched


def _noting(func: Any, failures: list[str], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """`func` with the same name and signature, which notes what it raises or what it gives that is no score."""

    async def noting(*args: Any, **kwargs: Any) -> Any:
        try:
            value = func(*args, **kwargs)
            return convert(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
            raise

    functools.update_wrapper(noting, func)
    noting.__name__ = str(getattr(func, "__name__", repr(func)))
    noting.__signature__ = inspect.signature(func)  # type: ignore[attr-defined]
    return noting


def _note_swallowed(message: logging.LogRecord) -> bool:
    """Notes errors that a rubric of the upstream answers with 0 and says in its log alone."""
    failures = _swallowed.get()
    if failures is not None and message.getMessage().startswith(_SWALLOWED):
        failures.append(message.getMessage())
    return True
