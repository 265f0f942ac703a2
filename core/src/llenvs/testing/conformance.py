"""The two ways in: a function for anybody, a class of tests for pytest."""

from __future__ import annotations

import importlib.util
import sys
import unittest
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.testing.actions import ordinary_action
from llenvs.testing.check import Check
from llenvs.testing.checks import CHECKS
from llenvs.testing.report import ConformanceFailed, Report
from llenvs.testing.subject import Factory, Policy, Secrets, Subject
from llenvs.testing.suite import Suite


def check_environment(
    environment: str | Factory,
    *,
    options: Mapping[str, Any] | None = None,
    actions: Policy | None = None,
    secrets: Secrets | None = None,
    tasks: int = 3,
    seeds: tuple[int, ...] = (0, 1),
    max_steps: int = 8,
    second_process: bool = True,
    raise_on_violation: bool = True,
) -> Report:
    """Check that an environment keeps the promises of the contract.

    Args:
        environment: its address ("adapter/name"), or a function without arguments that makes a fresh one. With an
            address the checks of unknown options and of a second process are made too; the latter also for a
            function that another process can import.
        options: of the environment, with an address.
        actions: ``(state, rng) -> Action | str``, a policy that plays the episodes; without it, texts and tool
            calls that fit any environment and get far in few.
        secrets: ``state -> texts`` that must not be in the observation of a non-terminal state. Without it, the
            values in `hidden` under keys such as "answer" are looked for in places where a question would not
            have them. Give `no_secrets` for a task whose answer is rightly part of the question.
        tasks: tasks that are played, spread from the first to the last.
        seeds: at least two, different.
        max_steps: steps played of each episode at most.
        second_process: whether to start one where that can be done (it takes as long as importing the upstream).
        raise_on_violation: whether to raise when a check found something.

    Returns:
        What was found; ``print`` it.

    Raises:
        ConformanceFailed: a check found something.
        InvalidOption: `environment` is no address and no function.
    """
    suite = Suite(
        subject_of(environment, options, actions, secrets, tasks, seeds, max_steps, second_process), CHECKS
    )
    try:
        report = suite.report()
    finally:
        suite.close()
    if raise_on_violation:
        report.raise_for_violations()
    return report


def subject_of(
    environment: str | Factory,
    options: Mapping[str, Any] | None,
    actions: Policy | None,
    secrets: Secrets | None,
    tasks: int,
    seeds: tuple[int, ...],
    max_steps: int,
    second_process: bool,
) -> Subject:
    """The subject that `check_environment` describes."""
    if len(set(seeds)) < 2:
        raise InvalidOption("seeds", seeds, "must be at least two different integers")
    for name, value in (("tasks", tasks), ("max_steps", max_steps)):
        if value < 1:
            raise InvalidOption(name, value, "must be at least 1")
    rest = (secrets, tasks, tuple(seeds), max_steps, second_process)
    policy = actions or ordinary_action
    if isinstance(environment, str):
        return Subject(_maker(environment, dict(options or {})), policy, environment, dict(options or {}), *rest)
    if isinstance(environment, Environment) or not callable(environment):
        raise InvalidOption(
            "environment",
            environment,
            "must be an address or a function that makes a fresh environment",
            valid='"adapter/name" or lambda: MyEnvironment()',
        )
    if options:
        raise InvalidOption("options", options, "go with an address; a function gives its own")
    return Subject(environment, policy, None, None, *rest, importable=_importable(environment))


def _maker(address: str, options: dict[str, Any]) -> Factory:
    def factory() -> Environment[Any]:
        from llenvs.core.registry import make

        return make(address, **options)

    return factory


def _importable(factory: Callable[..., Any]) -> str | None:
    """``module:name`` if another process can import `factory` under it."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", None)
    if not module or not name or module == "__main__" or not name.isidentifier():
        return None
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # a module that was loaded by other means than its name
        return None
    if found is None or getattr(sys.modules.get(module), name, None) is not factory:
        return None
    return f"{module}:{name}"


class EnvironmentConformance:
    """Tests that an environment conforms, one per check, for pytest to collect from a subclass.

    A subclass gives `make`, a function without arguments, or `environment` (and `options`), the address. The
    other attributes are the arguments of `check_environment`.
    """

    make: ClassVar[Any] = None
    environment: ClassVar[str | None] = None
    options: ClassVar[Mapping[str, Any] | None] = None
    actions: ClassVar[Any] = None
    secrets: ClassVar[Any] = None
    tasks: ClassVar[int] = 3
    seeds: ClassVar[tuple[int, ...]] = (0, 1)
    max_steps: ClassVar[int] = 8
    second_process: ClassVar[bool] = True

    _suite: ClassVar[Suite | None] = None

    @classmethod
    def suite(cls) -> Suite:
        """The checks on this class's environment, shared by its tests."""
        if cls._suite is None:
            what = cls.environment or cls.make
            if what is None:
                raise InvalidOption(cls.__name__, None, "must define make or environment")
            subject = subject_of(
                what,
                cls.options,
                cls.actions,
                cls.secrets,
                cls.tasks,
                cls.seeds,
                cls.max_steps,
                cls.second_process,
            )
            cls._suite = Suite(subject, CHECKS)
        return cls._suite

    def __init_subclass__(cls) -> None:
        cls._suite = None  # a subclass of a test class has its own

    @classmethod
    def teardown_class(cls) -> None:
        """Close the environment (pytest calls this after the last test)."""
        if cls._suite is not None:
            cls._suite.close()


def _test(check: Check) -> Callable[[EnvironmentConformance], None]:
    def test(self: EnvironmentConformance) -> None:
        __tracebackhide__ = True  # pytest then shows the report, not the kit's own code
        suite = self.suite()
        outcome = suite.outcome(check.name)
        if outcome.skipped is not None:
            raise unittest.SkipTest(outcome.skipped)
        if outcome.problems:
            raise ConformanceFailed(Report(type(self).__name__, (outcome,)))

    test.__name__ = f"test_{check.name}"
    test.__doc__ = check.title
    return test


for _check in CHECKS:
    setattr(EnvironmentConformance, f"test_{_check.name}", _test(_check))
