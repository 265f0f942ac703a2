"""The user's own function as a scorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption
from llenvs_huggingface.scoring.scorer import Score, Scorer


@dataclass(frozen=True)
class CallableScorer(Scorer):
    """Any ``function(answer, expected) -> number or bool``. What it raises is its caller's to see."""

    name: ClassVar[str] = "callable"
    function: Callable[[str, Any], float]

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        value = self.function(answer, expected)
        if not isinstance(value, Real):
            raise InvalidOption("scoring", value, "the function must return a number or a bool")
        return Score(float(value))

    def check(self, expected: Any) -> str | None:
        """It takes anything."""
        return None
