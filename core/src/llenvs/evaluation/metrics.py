"""Figures gathered as trajectories end, in memory that does not grow with what they hold.

Kept is one reward (8 bytes) and one verdict (1 byte) for each trajectory, and sums.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from llenvs.core.generation import Usage
from llenvs.evaluation.record import Outcome
from llenvs.evaluation.result import EvaluationResult, SignalSummary
from llenvs.evaluation.statistics import (
    bootstrap_interval,
    clustered_wilson_interval,
    pass_at_k,
    wilson_interval,
)

_OPEN, _FAILURE, _SUCCESS, _UNJUDGED, _ERROR = range(5)
_MOST_K = 16


class TaskSlots:
    """The places of an environment's trajectories: one for each task and attempt, numbered task by task."""

    def __init__(self, task_indices: Sequence[int], repeats: int) -> None:
        self.task_indices = task_indices
        self.repeats = repeats
        # a range finds its members by arithmetic
        self._positions = None if isinstance(task_indices, range) else {t: i for i, t in enumerate(task_indices)}

    def __len__(self) -> int:
        return len(self.task_indices) * self.repeats

    def find(self, task_index: int, repeat: int) -> int | None:
        """The slot of an attempt; None when it is not part of the run."""
        if not 0 <= repeat < self.repeats:
            return None
        if self._positions is not None:
            position = self._positions.get(task_index)
        elif task_index in self.task_indices:
            position = self.task_indices.index(task_index)
        else:
            position = None
        return None if position is None else position * self.repeats + repeat


class Metrics:
    """The running figures of one environment."""

    def __init__(self, environment: str, model: str, task_indices: Sequence[int], repeats: int) -> None:
        self.environment, self.model = environment, model
        self.slots = TaskSlots(task_indices, repeats)
        self._verdicts = bytearray(len(self.slots))
        self._rewards = array("d", bytes(8 * len(self.slots)))
        self._signals: dict[str, tuple[_Sum, int]] = {}
        self._errors: Counter[str] = Counter()
        self._usage = Usage()
        self._seconds, self._max_seconds = _Sum(), 0.0
        self._turns = 0
        self.done = self.num_errors = self.judged = self.successes = self.length_limited = 0
        self.reward_sum = _Sum()

    def add(self, outcome: Outcome) -> bool:
        """Count a trajectory; False when it is not part of the run or counted already."""
        slot = self.slots.find(outcome.task_index, outcome.repeat)
        if slot is None or self._verdicts[slot] != _OPEN:
            return False
        self.done += 1
        self._usage += outcome.usage
        self._turns += outcome.num_turns
        self._seconds.add(outcome.seconds)
        self._max_seconds = max(self._max_seconds, outcome.seconds)
        self.length_limited += outcome.length_limited
        if outcome.error is not None:
            self._verdicts[slot] = _ERROR
            self._errors[outcome.error] += 1
            self.num_errors += 1
            return True
        self._rewards[slot] = outcome.reward
        self.reward_sum.add(outcome.reward)
        for name, value in outcome.signals.items():
            total, count = self._signals.get(name) or (_Sum(), 0)
            total.add(value)
            self._signals[name] = (total, count + 1)
        if outcome.success is None:
            self._verdicts[slot] = _UNJUDGED
        else:
            self._verdicts[slot] = _SUCCESS if outcome.success else _FAILURE
            self.judged += 1
            self.successes += outcome.success
        return True

    def is_open(self, task_index: int, repeat: int) -> bool:
        """Whether this attempt is part of the run and has not ended."""
        slot = self.slots.find(task_index, repeat)
        return slot is not None and self._verdicts[slot] == _OPEN

    def result(
        self, *, wall_seconds: float = 0.0, session_tokens: int = 0, output_dir: Path | None = None
    ) -> EvaluationResult:
        """The figures so far."""
        repeats = self.slots.repeats
        trials, successes, counts, sums = self._by_task()
        scored = self.done - self.num_errors
        success_interval = reward_interval = mean_reward = None
        if self.judged:
            success_interval = (
                wilson_interval(self.successes, self.judged)
                if repeats == 1
                else clustered_wilson_interval(successes, trials)
            )
        if scored:
            mean_reward = math.fsum(sums) / scored
            reward_interval = bootstrap_interval(sums, counts)
        return EvaluationResult(
            environment=self.environment,
            model=self.model,
            num_tasks=len(self.slots.task_indices),
            repeats=repeats,
            num_done=self.done,
            num_errors=self.num_errors,
            num_judged=self.judged,
            num_successes=self.successes,
            success_interval=success_interval,
            mean_reward=mean_reward,
            reward_interval=reward_interval,
            signals={
                name: SignalSummary(total.value / count, count)
                for name, (total, count) in sorted(self._signals.items())
            },
            pass_at_k=_pass_at_ks(trials, successes, repeats) if self.judged else {},
            usage=self._usage,
            mean_turns=self._turns / self.done if self.done else 0.0,
            num_cut_off=self.length_limited,
            mean_seconds=self._seconds.value / self.done if self.done else 0.0,
            max_seconds=self._max_seconds,
            wall_seconds=wall_seconds,
            session_tokens=session_tokens,
            errors=dict(self._errors),
            output_dir=output_dir,
        )

    def _by_task(self) -> tuple[list[int], list[int], list[int], list[float]]:
        """Per task: judged attempts, successes, attempts without error, sum of their rewards."""
        trials, successes, counts, sums = [], [], [], []
        repeats = self.slots.repeats
        for start in range(0, len(self._verdicts), repeats):
            verdicts = self._verdicts[start : start + repeats]
            succeeded = verdicts.count(_SUCCESS)
            judged = succeeded + verdicts.count(_FAILURE)
            successes.append(succeeded)
            trials.append(judged)
            counts.append(judged + verdicts.count(_UNJUDGED))
            # slots without a reward hold 0.0
            sums.append(math.fsum(self._rewards[start : start + repeats]))
        return trials, successes, counts, sums


def _pass_at_ks(trials: Sequence[int], successes: Sequence[int], repeats: int) -> dict[int, float]:
    """pass@k for every k up to 16, then for powers of two and `repeats`, over tasks with at least k attempts."""
    ks = [k for k in range(1, repeats + 1) if k <= _MOST_K or k == repeats or k & (k - 1) == 0]
    found = {}
    for k in ks:
        values = [pass_at_k(n, c, k) for n, c in zip(trials, successes, strict=True) if n >= k]
        if values:
            found[k] = math.fsum(values) / len(values)
    return found


class _Sum:
    """A running sum with A. Neumaier's compensation (1974): its error does not grow with the number of terms."""

    __slots__ = ("_compensation", "_total")

    def __init__(self) -> None:
        self._total = self._compensation = 0.0

    def add(self, value: float) -> None:
        total = self._total + value
        if abs(self._total) >= abs(value):
            self._compensation += (self._total - total) + value
        else:
            self._compensation += (value - total) + self._total
        self._total = total

    @property
    def value(self) -> float:
        return self._total + self._compensation
