"""The promises of the contract: one environment of each kind, by address where a second process tells more."""

from collections.abc import Mapping
from typing import Any, ClassVar

import llenvs
from llenvs.testing import EnvironmentConformance


class TestInThisProcess(EnvironmentConformance):
    environment = "reasoning_gym/leg_counting"
    options: ClassVar[Mapping[str, Any]] = {"size": 20}


class TestInTheWorker(EnvironmentConformance):
    environment = "reasoning_gym/word_ladder"
    options: ClassVar[Mapping[str, Any]] = {"size": 20}


class TestExecutingScorer(EnvironmentConformance):
    make = staticmethod(lambda: llenvs.make("reasoning_gym/countdown", size=5, level=0))


class TestTuplesInTheItem(EnvironmentConformance):
    make = staticmethod(lambda: llenvs.make("reasoning_gym/arc_agi", size=5))


class TestStoredPrograms(EnvironmentConformance):
    make = staticmethod(lambda: llenvs.make("reasoning_gym/codeio", size=5))


class TestWithoutOneAnswer(EnvironmentConformance):
    make = staticmethod(lambda: llenvs.make("reasoning_gym/graph_color", size=5, reward="correctness"))


class TestNativeExtraction(EnvironmentConformance):
    make = staticmethod(
        lambda: llenvs.make(
            "reasoning_gym/gcd", answer_extractor="native", extra_rewards=["format"], upstream_prompt="direct"
        )
    )


class TestComposite(EnvironmentConformance):
    make = staticmethod(
        lambda: llenvs.make("reasoning_gym/composite", size=12, datasets=[{"name": "gcd"}, {"name": "n_queens"}])
    )
