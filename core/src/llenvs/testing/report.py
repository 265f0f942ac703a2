"""What the conformance kit found."""

from __future__ import annotations

from dataclasses import dataclass

from llenvs.core.errors import LLEnvsError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check found: `problems` (none: it passed), or in `skipped` why it was not made."""

    check: str
    title: str
    problems: tuple[str, ...] = ()
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped is not None:
            return f"skip  {self.check}: {self.skipped}"
        if not self.problems:
            return f"ok    {self.check}"
        return f"FAIL  {self.check}: {self.title}" + "".join(f"\n      - {problem}" for problem in self.problems)


class ConformanceFailed(LLEnvsError, AssertionError):
    """The environment breaks its contract; `report` holds everything that was found."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(str(report))


@dataclass(frozen=True, slots=True)
class Report:
    """Outcomes of all checks on one environment, in the order in which they were made."""

    environment: str
    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether no check found a problem."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that found a problem."""
        return tuple(o.check for o in self.outcomes if o.problems)

    @property
    def passed(self) -> tuple[str, ...]:
        """Names of the checks that were made and found nothing."""
        return tuple(o.check for o in self.outcomes if not o.problems and o.skipped is None)

    @property
    def skipped(self) -> dict[str, str]:
        """Names of the checks that were not made, with the reason."""
        return {o.check: o.skipped for o in self.outcomes if o.skipped is not None}

    @property
    def violations(self) -> tuple[str, ...]:
        """All problems as ``check: text``."""
        return tuple(f"{o.check}: {problem}" for o in self.outcomes for problem in o.problems)

    def raise_for_violations(self) -> None:
        """Raise `ConformanceFailed` if a check found a problem."""
        if not self.ok:
            raise ConformanceFailed(self)

    def __str__(self) -> str:
        head = (
            f"{self.environment}: {len(self.passed)} checks passed, {len(self.failed)} failed, "
            f"{len(self.skipped)} skipped"
        )
        return "\n".join([head, *(str(outcome) for outcome in self.outcomes)])
