"""Texts compared: `exact`, `text` (normalised) and `f1` (shared words)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llenvs_huggingface.scoring.scorer import RIGHT, WRONG, Score, Scorer

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = ("yes", "no", "noanswer")


def normalized(text: str) -> str:
    """`text` in lower case without ASCII punctuation, articles and superfluous white space.

    The normalisation of the SQuAD evaluation (Rajpurkar et al. 2016, arXiv:1606.05250), which HotpotQA and
    TriviaQA use too. Where nothing would be left (of "(A)"), articles stay, and then punctuation.
    """
    lower = text.lower()
    plain = lower.translate(_NO_PUNCTUATION)
    for words in (_ARTICLES.sub(" ", plain), plain, lower):
        if words := " ".join(words.split()):
            return words
    return ""


def word_f1(answer: str, expected: str) -> float:
    """F1 of the words that two normalised texts share, counted with multiplicity; in [0, 1]."""
    given, right = answer.split(), expected.split()
    shared = sum((Counter(given) & Counter(right)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(given), shared / len(right)
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True)
class ExactScorer(Scorer):
    """Right when the texts are the same, white space at both ends aside."""

    name: ClassVar[str] = "exact"
    ignore_case: bool = field(default=True, metadata={"doc": "whether case does not count"})

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        given, right = answer.strip(), expected.strip()
        if self.ignore_case:
            given, right = given.casefold(), right.casefold()
        return RIGHT if given == right else WRONG


@dataclass(frozen=True)
class TextScorer(Scorer):
    """Right when the normalised texts are the same (the exact match of SQuAD): case, punctuation, articles and
    spacing do not count."""

    name: ClassVar[str] = "text"

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        return RIGHT if normalized(answer) == normalized(expected) else WRONG


@dataclass(frozen=True)
class F1Scorer(Scorer):
    """F1 of the words shared with the expected text, after normalisation; right is the exact match."""

    name: ClassVar[str] = "f1"
    graded: ClassVar[str | None] = "f1"
    closed_answers: bool = field(
        default=False,
        metadata={
            "doc": "whether yes, no and noanswer share nothing with any other text, as in HotpotQA's own score"
        },
    )

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        given, right = normalized(answer), normalized(expected)
        if given == right:
            return Score(1.0, 1.0)
        if self.closed_answers and (given in _CLOSED or right in _CLOSED):
            return Score(0.0, 0.0)
        return Score(0.0, word_f1(given, right))
