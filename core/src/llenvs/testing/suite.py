"""Runs checks on a subject, each at most once and only when what it stands on holds."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from llenvs.testing.check import Check, NotApplicable
from llenvs.testing.report import Outcome, Report
from llenvs.testing.subject import Subject

_SHOWN = 5  # problems of one check; more of the same help nobody


class Suite:
    """The checks on one subject, with what they found so far."""

    def __init__(self, subject: Subject, checks: Iterable[Check]) -> None:
        self.subject = subject
        self.checks = {check.name: check for check in checks}
        self._outcomes: dict[str, Outcome] = {}

    def outcome(self, name: str) -> Outcome:
        """What the check `name` finds; it is made now if it was not before."""
        if name not in self._outcomes:
            self._outcomes[name] = self._make(self.checks[name])
        return self._outcomes[name]

    def report(self) -> Report:
        """Outcomes of all checks."""
        outcomes = tuple(self.outcome(name) for name in self.checks)
        address = self.subject.address
        if address is None and not self.outcome("create").problems:
            address = self.subject.environment.spec.id
        return Report(address or "environment", outcomes)

    def close(self) -> None:
        """Close the environment, if one was made."""
        if "environment" in self.subject.__dict__ and not self.outcome("create").problems:
            self.subject.environment.close()

    def _make(self, check: Check) -> Outcome:
        blocked = self._blocker(check)
        if blocked is not None:
            return Outcome(check.name, check.title, skipped=f"not checked, because {blocked!r} fails")
        try:
            problems = list(dict.fromkeys(check.find(self.subject)))
        except NotApplicable as reason:
            return Outcome(check.name, check.title, skipped=str(reason))
        except Exception as error:  # noqa: BLE001 - whatever the environment raises is a finding, not our failure
            problems = [_raised(error)]
        if len(problems) > _SHOWN:
            problems = [*problems[:_SHOWN], f"and {len(problems) - _SHOWN} more"]
        return Outcome(check.name, check.title, tuple(problems))

    def _blocker(self, check: Check) -> str | None:
        """The check at the root of the failures that `check` would repeat."""
        for need in check.needs:
            if self.outcome(need).problems:
                return need
            deeper = self._blocker(self.checks[need])
            if deeper is not None:
                return deeper
        return None


def _raised(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f", at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"raised {type(error).__name__}: {error}{where}"
