"""The upstream's grading of a finished conversation, part by part, as signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from llenvs.core.errors import LLEnvsError
from llenvs.core.signals import RewardType, Signal
from llenvs_tau.domain import Domain
from llenvs_tau.judge import Judge

STOPPED = frozenset({"user_stop", "agent_stop"})
"""Ends that the upstream grades; all others give 0."""
PARTS = {
    "db": "DB",
    "env_assertion": "ENV_ASSERTION",
    "action": "ACTION",
    "communicate": "COMMUNICATE",
    "nl_assertion": "NL_ASSERTION",
}
"""Signal -> the upstream's name of the part in a task's reward basis."""

Ask = Callable[[Callable[[], str]], str]


@dataclass
class _Part:
    """What a part of the grading came to: 0 or 1, None when it could not be told."""

    reward: float | None = None
    met: list[bool] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class Grader:
    """Grades conversations of a domain.

    Attributes:
        domain: the domain.
        judge: of assertions in natural language; None for none.
        nl_assertions: what to do where these count and there is no judge.
    """

    domain: Domain
    judge: Judge | None = None
    nl_assertions: Literal["judge", "skip"] = "judge"

    def grade(self, task: Any, messages: list[Any], reason: str, ask: Ask) -> tuple[Signal, ...]:
        """The signals of a conversation that ended.

        Args:
            task: the upstream's task.
            messages: all of them, in order, those that the task begins with included.
            reason: why it ended, in the upstream's words.
            ask: asks the judge's model, live or recorded.

        Returns:
            ``reward``, which is the upstream's, and each part with weight 0. A part that the upstream's own code
            could not grade has no number but an error, and so has the reward if the part counts in it.
        """
        criteria = task.evaluation_criteria
        basis = {str(part.value) for part in criteria.reward_basis} if criteria is not None else set()
        parts = self._parts(task, messages, ask)
        if self.nl_assertions == "skip":
            basis -= {PARTS["nl_assertion"]}
        return (self._total(parts, basis, reason), *(_signal(name, part, basis) for name, part in parts.items()))

    def _parts(self, task: Any, messages: list[Any], ask: Ask) -> dict[str, _Part]:
        tau2 = self.domain.upstream
        parts = {name: _Part() for name in PARTS}

        def environment() -> None:
            info = tau2.environment_evaluator.calculate_reward(
                environment_constructor=self.domain.grading_environments(task),
                task=task,
                full_trajectory=messages,
                solo_mode=self.domain.solo,
            )
            parts["db"].reward = info.db_check.db_reward if info.db_check is not None else info.reward
            checks = info.env_assertions or []
            parts["env_assertion"].met = [check.met for check in checks]
            parts["env_assertion"].reward = float(all(check.met for check in checks))

        def action() -> None:
            info = tau2.action_evaluator.calculate_reward(task=task, full_trajectory=messages)
            parts["action"].reward = info.reward
            parts["action"].met = [check.action_match for check in info.action_checks or []]

        def communicate() -> None:
            info = tau2.communicate_evaluator.calculate_reward(task=task, full_trajectory=messages)
            parts["communicate"].reward = info.reward
            parts["communicate"].met = [check.met for check in info.communicate_checks or []]

        def nl_assertion() -> None:
            if self.judge is not None:
                info = self.judge.judge(task, messages, ask)
                parts["nl_assertion"].reward = info.reward
                parts["nl_assertion"].met = [check.met for check in info.nl_assertions or []]

        _tried(environment, parts["db"], parts["env_assertion"])
        _tried(action, parts["action"])
        _tried(communicate, parts["communicate"])
        _tried(nl_assertion, parts["nl_assertion"])
        return parts

    def _total(self, parts: dict[str, _Part], basis: set[str], reason: str) -> Signal:
        if reason not in STOPPED:
            return Signal("reward", reward=0.0, metadata={"termination_reason": reason})
        counted = {name: part for name, part in parts.items() if PARTS[name] in basis}
        if any(part.reward == 0.0 for part in counted.values()):
            return Signal("reward", reward=0.0)
        unknown = {name: part.error or _WITHOUT_JUDGE for name, part in counted.items() if part.reward is None}
        if unknown:
            said = "; ".join(f"{name}: {error}" for name, error in unknown.items())
            return Signal("reward", metadata={"error": said})
        return Signal("reward", reward=1.0)


_WITHOUT_JUDGE = (
    'counts in this task and needs a judge: give judge_backend, or nl_assertions="skip" to leave it out'
)


def _tried(grade: Callable[[], None], *parts: _Part) -> None:
    try:
        grade()
    except Exception as error:  # noqa: BLE001 - an assertion about a record that does not exist, say
        for part in parts:
            part.reward, part.met = None, []
            part.error = str(error) if isinstance(error, LLEnvsError) else f"{type(error).__name__}: {error}"


def _signal(name: str, part: _Part, basis: set[str]) -> Signal:
    metadata: dict[str, Any] = {"in_basis": PARTS[name] in basis}
    if part.met:
        metadata["met"] = part.met
    if part.error is not None:
        metadata["error"] = part.error
    return Signal(name, RewardType.OUTCOME, part.reward, None, 0.0, metadata)
