"""The conformance kit: whether an environment keeps the promises of the contract.

In the tests of an adapter package, two lines, one test per promise::

    from llenvs.testing import EnvironmentConformance

    class TestLegCounting(EnvironmentConformance):
        make = staticmethod(lambda: llenvs.make("reasoning_gym/leg_counting", size=20))

Anywhere else, as a function that needs no pytest::

    from llenvs.testing import check_environment

    print(check_environment("reasoning_gym/leg_counting", options={"size": 20}))
"""

from llenvs.testing.conformance import EnvironmentConformance, check_environment
from llenvs.testing.report import ConformanceFailed, Outcome, Report
from llenvs.testing.secrecy import no_secrets
from llenvs.testing.walks import check_walk, check_walk_in_second_process

__all__ = [
    "ConformanceFailed",
    "EnvironmentConformance",
    "Outcome",
    "Report",
    "check_environment",
    "check_walk",
    "check_walk_in_second_process",
    "no_secrets",
]
