"""Rewards and metrics of the upstream as signals, with those that raised.

When one reward function raises, the upstream throws the scores of all away and fails the rollout. Here every
function is run: `Task.score`, `Task.hooks` and `Task.plugged_judges` are wrapped, for the rollouts of ours alone,
to note what raises; the rollout still fails after it, as the upstream has it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from verifiers.v1.task import Task
from verifiers.v1.trace import Trace

from llenvs.core.signals import RewardType, Signal

TOTAL = "total_reward"
"""Name of the signal with the upstream's own reward; weight 0, since the rewards' signals add up to it."""


@dataclass(slots=True)
class Record:
    """What raised while a rollout was scored: name, weight, and what was said."""

    failures: list[tuple[str, float, str]] = field(default_factory=list)


class ScoringFailed(Exception):
    """A reward function or metric raised."""


_records: dict[str, Record] = {}  # by the id of the trace
_current: ContextVar[Record | None] = ContextVar("llenvs_verifiers_v1_record", default=None)


def watch(trace: Trace[Any, Any, Any]) -> Record:
    """Note from now on what raises when `trace` is scored; until `forget`."""
    _install()
    return _records.setdefault(trace.id, Record())


def forget(trace: Trace[Any, Any, Any]) -> None:
    """The end of `watch`."""
    _records.pop(trace.id, None)


def signals_of(
    traces: Sequence[Trace[Any, Any, Any]], records: Mapping[str, Record], seat: str
) -> tuple[Signal, ...]:
    """The signals of a finished episode.

    Args:
        traces: of all its rollouts.
        records: by the ids of the traces.
        seat: the policy's; where it played several rollouts, their mean counts. The rewards of other seats are
            reported with weight 0 as ``seat.name``.
    """
    own = [trace for trace in traces if trace.agent.name == seat]
    signals: list[Signal] = []
    names = {TOTAL}
    failed: list[str] = []
    for trace in traces:
        ours = trace.agent.name == seat
        prefix, share = ("", 1 / len(own)) if ours else (f"{trace.agent.name}.", 0.0)
        for name, weight, score, error in _scores(trace, records.get(trace.id, Record())):
            kind = RewardType.PROCESS if weight == 0 else RewardType.OUTCOME
            metadata = {"error": error} if error else {}
            signals.append(Signal(_unique(prefix + name, names), kind, score, None, weight * share, metadata))
            if error and ours and weight != 0:
                failed.append(f"{name}: {error}")
    if failed:
        return (*signals, Signal(TOTAL, weight=0.0, metadata={"error": "; ".join(failed)}))
    total = sum(trace.reward for trace in own) / len(own) if own else 0.0
    return (*signals, Signal(TOTAL, reward=float(total), weight=0.0))


def _scores(trace: Trace[Any, Any, Any], record: Record) -> list[tuple[str, float, float | None, str | None]]:
    """Name, weight, score and error of each reward, then of each metric."""
    left = trace.last_error.message if trace.last_error is not None else "it was not scored"
    found: list[tuple[str, float, float | None, str | None]] = []
    for name, reward in trace.rewards.items():
        if reward is None:
            found.append((name, 1.0, None, left))
        else:
            found.append((name, reward.weight, reward.score, None))
    found += [(name, weight, None, said) for name, weight, said in record.failures if weight != 0]
    found += [(n, 0.0, value, None if value is not None else left) for n, value in trace.metrics.items()]
    return found + [(name, weight, None, said) for name, weight, said in record.failures if weight == 0]


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


@functools.cache
def _install() -> None:
    score, hooks, judges = Task.score, Task.hooks, Task.plugged_judges

    @functools.wraps(score)
    async def watched_score(self: Any, trace: Any, runtime: Any = None) -> None:
        record = _records.get(trace.id)
        if record is None:
            await score(self, trace, runtime)
            return
        token = _current.set(record)
        try:
            await score(self, trace, runtime)
        finally:
            _current.reset(token)
        if record.failures:
            raise ScoringFailed("; ".join(f"{name}: {said}" for name, _, said in record.failures))

    @functools.wraps(hooks)
    def watched_hooks(self: Any, attr: str) -> list[Callable[..., Any]]:
        found = hooks(self, attr)
        record = _current.get()
        if record is None or attr not in ("reward", "metric"):
            return found
        return [_noting(fn, record, fn.__name__, _weight(fn) if attr == "reward" else 0.0) for fn in found]

    @functools.wraps(judges)
    def watched_judges(self: Any) -> list[Any]:
        found = judges(self)
        record = _current.get()
        if record is not None:
            for judge in found:
                judge.score = _noting(judge.score, record, judge.reward_name, float(judge.config.weight))
        return found

    Task.score = watched_score
    Task.hooks = watched_hooks
    Task.plugged_judges = watched_judges


def _weight(fn: Callable[..., Any]) -> float:
    return float(getattr(fn, "_vf_weight", 1.0))


def _noting(fn: Callable[..., Any], record: Record, name: str, weight: float) -> Callable[..., Any]:
    """`fn` with the same signature, whose exception is noted; it then gives no scores."""

    async def noting(*args: Any, **kwargs: Any) -> Any:
        try:
            value = fn(*args, **kwargs)
            value = await value if inspect.isawaitable(value) else value
            scores = value.values() if isinstance(value, Mapping) else [value]
            for score in scores:
                float(score)
        except Exception as error:  # noqa: BLE001 - whatever a reward function raises is the finding
            record.failures.append((name, weight, f"{type(error).__name__}: {error}"))
            return {}
        return value

    functools.update_wrapper(noting, fn)
    noting.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    return noting
