"""The scorer contract: an answer and what is expected in, a score out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple


class Score(NamedTuple):
    """What an answer is worth.

    Attributes:
        value: in [0, 1]; 1.0 for right.
        similarity: a graded value in [0, 1] beside it, for scorers that have one (`Scorer.graded`); else None.
        error: why the answer could not be judged (too long, too slow, its code failed); None when it could.
    """

    value: float
    similarity: float | None = None
    error: str | None = None


RIGHT = Score(1.0)
WRONG = Score(0.0)


@dataclass(frozen=True)
class Scorer(ABC):
    """Judges answers. A value: its fields are its options, as a configuration writes them."""

    name: ClassVar[str]
    graded: ClassVar[str | None] = None
    """Name of the signal with `Score.similarity`; None for a scorer that knows right and wrong alone."""
    needs_choices: ClassVar[bool] = False

    @abstractmethod
    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """What `answer` is worth.

        Args:
            answer: what was extracted from a response.
            expected: what the data set gives as right, in the form this scorer takes.
            choices: the options of a multiple-choice question in the order shown; () for any other.
        """

    def check(self, expected: Any) -> str | None:
        """What is wrong with an expected value that this scorer cannot use; None for nothing."""
        return None if isinstance(expected, str) else f"{self.name} needs a text, not a {type(expected).__name__}"

    @property
    def graded_signal(self) -> str | None:
        """`graded`, or that of the scorer inside this one."""
        return self.graded

    def close(self) -> None:
        """Let go of processes, if this scorer uses any."""
