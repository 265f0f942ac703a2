"""The option chosen: `choice`, and `letter_or_text` for questions that list their options themselves."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from llenvs.core.extraction import MultipleChoiceExtractor
from llenvs.core.extraction.cleaners import clean_until_stable
from llenvs_huggingface.choices import LETTERS
from llenvs_huggingface.scoring.number import WRAPPINGS
from llenvs_huggingface.scoring.scorer import RIGHT, WRONG, Score, Scorer
from llenvs_huggingface.scoring.text import normalized

_LETTERED = re.compile(r"[(\[]?([A-Za-z])[)\].:,]\s*(.*)", re.DOTALL)
_BRACKETED = re.compile(r"\(([A-Z])\)")


def chosen(answer: str, choices: Sequence[str]) -> str | None:
    """The letter of the option that `answer` names; None where it names none, or none that there is.

    A bare letter, then an option's text ("thermometer"; with its letter in front, "B. thermometer", the letter
    decides), then a letter that the text states ("the answer is (B)") or that stands in it.
    """
    letters = LETTERS[: len(choices)]
    text = clean_until_stable(answer, WRAPPINGS)
    alone = text.strip("()[]{}.: ").upper()
    if len(alone) == 1 and alone in LETTERS:
        return alone if alone in letters else _by_text(text, choices)
    named = _by_text(text, choices)
    if named is not None:
        return named
    lettered = _LETTERED.fullmatch(text)
    if lettered is not None and normalized(lettered[2]) in map(normalized, choices):
        letter = lettered[1].upper()
        return letter if letter in letters else None
    return _extractor(letters).extract(text)


def _by_text(text: str, choices: Sequence[str]) -> str | None:
    for same in (str.strip, normalized):
        wanted = same(text)
        found = [letter for letter, choice in zip(LETTERS, choices, strict=False) if same(choice) == wanted]
        if len(found) == 1:
            return found[0]
    return None


@functools.cache
def _extractor(letters: str) -> MultipleChoiceExtractor:
    return MultipleChoiceExtractor(letters, before=())


@dataclass(frozen=True)
class ChoiceScorer(Scorer):
    """Right when the answer names the expected option, by its letter or by its text."""

    name: ClassVar[str] = "choice"
    needs_choices: ClassVar[bool] = True

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`; `expected` is the letter in the order shown."""
        return RIGHT if chosen(answer, choices) == expected else WRONG


@dataclass(frozen=True)
class LetterOrTextScorer(Scorer):
    """For BIG-Bench Hard: an expected ``(B)`` is a choice by letter; anything else is compared as text.

    That comparison is lm-evaluation-harness's for these tasks: case, commas, double quotes, backslashes and a
    trailing full stop do not count. Spacing does not count either.
    """

    name: ClassVar[str] = "letter_or_text"

    def score(self, answer: str, expected: Any, choices: Sequence[str] = ()) -> Score:
        """See `Scorer`."""
        letter = _BRACKETED.fullmatch(expected.strip())
        if letter is not None:
            given = _extractor(LETTERS).extract(clean_until_stable(answer, WRAPPINGS))
            return RIGHT if given == letter[1] else WRONG
        return RIGHT if _plain(answer) == _plain(expected) else WRONG


def _plain(text: str) -> str:
    text = " ".join(text.split()).casefold()
    text = text.removesuffix(".")
    return "".join(character for character in text if character not in ',\\"').strip()
