"""Several right answers: `any_of` (one of them suffices), `set` (all of them, in any order), `closest`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llenvs.core.extraction.cleaners import clean_until_stable
from llenvs_huggingface.scoring.number import WRAPPINGS, whole_number
from llenvs_huggingface.scoring.scorer import RIGHT, WRONG, Score, Scorer
from llenvs_huggingface.scoring.text import TextScorer, normalized, word_f1

MAX_ITEMS = 10_000
_SEPARATOR = re.compile(r"\s*(?:[,;\n]|\\text\{\s*(?:and|or)\s*\}|(?<=\s)(?:and|or)(?=\s))\s*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True)
class AnyOfScorer(Scorer):
    """Right when the answer is right for one of the expected ones; the best counts."""

    name: ClassVar[str] = "any_of"
    scorer: Scorer = field(
        default_factory=TextScorer, metadata={"doc": "the scorer for each of the expected answers"}
    )

    @property
    def graded_signal(self) -> str | None:
        """That of the inner scorer."""
        return self.scorer.graded_signal

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`; `expected` is a list (or one text)."""
        best = WRONG
        for each in [expected] if isinstance(expected, str) else expected:
            score = self.scorer.score(answer, each, choices)
            if score.value == 1.0:
                return score
            if best is WRONG or (score.value, score.similarity or 0.0) > (best.value, best.similarity or 0.0):
                best = score
        return best

    def check(self, expected: Any) -> str | None:
        """Each must suit the inner scorer."""
        if isinstance(expected, str):
            return self.scorer.check(expected)
        if not isinstance(expected, list | tuple) or not expected:
            return f"{self.name} needs a list of answers that is not empty"
        return next((problem for problem in map(self.scorer.check, expected) if problem), None)

    def close(self) -> None:
        """See `Scorer`."""
        self.scorer.close()


@dataclass(frozen=True)
class SetScorer(Scorer):
    """Right when the answer lists exactly the expected items, in any order.

    Items stand between commas, semicolons, line ends, "and" or "or", or in a JSON-like list; numbers are compared
    by value, anything else as normalised text. A comma before three digits may be one of thousands or one between
    items: the answer is right when it is right in one of the two readings.
    """

    name: ClassVar[str] = "set"

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`; `expected` is a list, or a text that lists the items."""
        right = items_of(expected) if isinstance(expected, str) else {_key(each) for each in expected}
        if len(answer) > 20 * MAX_ITEMS:
            return Score(0.0, error=f"the answer has {len(answer):,} characters, too many for a list")
        if items_of(answer) == right:
            return RIGHT
        return RIGHT if items_of(_THOUSANDS.sub("", answer)) == right else WRONG

    def check(self, expected: Any) -> str | None:
        """A text or a list of texts."""
        if isinstance(expected, list | tuple) and all(isinstance(each, str) for each in expected):
            return None
        return super().check(expected)


def items_of(text: str) -> frozenset[Any]:
    """The items that `text` lists, in the form in which they are compared."""
    inner = clean_until_stable(text, WRAPPINGS)
    for opening, closing in (("\\{", "\\}"), ("{", "}"), ("[", "]"), ("(", ")")):
        if inner.startswith(opening) and inner.endswith(closing):
            inner = inner[len(opening) : len(inner) - len(closing)]
            break
    parts = _SEPARATOR.split(inner, maxsplit=MAX_ITEMS)
    return frozenset(_key(part) for part in parts if part.strip())


def _key(text: str) -> Any:
    number = whole_number(text)
    return number.value if number is not None else normalized(text)


@dataclass(frozen=True)
class ClosestScorer(Scorer):
    """Right when the answer shares more words with one of the right texts than with any of the wrong ones.

    The measure is ROUGE-1 (F1 of lower-case words of letters and digits), the decision lm-evaluation-harness's
    ``rouge1_acc`` for TruthfulQA (Lin et al. 2022, arXiv:2109.07958). It measures likeness, not truth.
    """

    name: ClassVar[str] = "closest"
    graded: ClassVar[str | None] = "rouge1"

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`; `expected` is ``{"right": [...], "wrong": [...]}``."""
        right = max(rouge1(answer, each) for each in expected["right"])
        wrong = max((rouge1(answer, each) for each in expected["wrong"]), default=0.0)
        return Score(1.0 if right > wrong else 0.0, right)

    def check(self, expected: Any) -> str | None:
        """Right and wrong texts."""
        if isinstance(expected, Mapping) and expected.get("right") and "wrong" in expected:
            return None
        return f"{self.name} needs right and wrong answers (the preset truthful_qa_generation has them)"


_WORDS = re.compile(r"[a-z0-9]+")


def rouge1(answer: str, reference: str) -> float:
    """ROUGE-1 F1 of two texts (Lin 2004), without stemming; in [0, 1]."""
    return word_f1(" ".join(_WORDS.findall(answer.lower())), " ".join(_WORDS.findall(reference.lower())))
