"""What follows "the answer is"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction.extractor import Extractor

# The end of a sentence inside a line: a mark, space, more text. Not after a title, nor between initials.
_SENTENCE_END = re.compile(
    r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMt)(?<!\bvs)(?<!\bNo)(?<!\bProf)"
    r"(?<![A-Z]\. [A-Z])[.!?](?=\s+\S)(?!\s+[A-Z]\.)"
)
_DISPLAY_MATH = {"$$": "$$", r"\[": r"\]"}


@dataclass(frozen=True)
class PatternExtractor(Extractor):
    """What the last phrase such as "the answer is X", "final answer: X" or "answer = X" announces.

    X reaches to the end of its sentence or line; it may begin on a later line; display math is taken whole.
    """

    name: ClassVar[str] = "pattern"
    phrases: tuple[str, ...] = field(
        default=("answer",), metadata={"doc": "the words before 'is', ':' or '='; case does not count"}
    )
    after: tuple[str, ...] = field(
        default=("whitespace", "punctuation", "markdown", "latex", "boxed", "quotes"),
        kw_only=True,
        metadata={"doc": "cleaners that run on what was found"},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.phrases or not all(phrase.strip() for phrase in self.phrases):
            raise InvalidOption("phrases", self.phrases, "must hold at least one phrase and no blank one")

    def _find(self, text: str) -> str | None:
        text = text.rstrip()
        last: re.Match[str] | None = None
        for match in _announcement(self.phrases).finditer(text):
            if match.end() < len(text):
                last = match
        return None if last is None else _announced(text[last.end() :].lstrip())


def _announcement(phrases: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(phrase.strip()) for phrase in phrases)
    # The bounds keep a text of nothing but announcements linear.
    return re.compile(
        rf"(?<!\w)(?:{words})(?!\w)(?:\s(?:to|of|for)(?:\s[^\s.:=]{{1,20}}){{1,8}}?)?[\s*_]{{0,4}}"
        r"(?:(?:is|are|was|equals|(?:would|should|must|will)\sbe)(?!\w)\s{0,2}[:=]?|[:：=])",
        re.IGNORECASE,
    )


def _announced(rest: str) -> str:
    closing = _DISPLAY_MATH.get(rest[:2])
    if closing is not None:
        end = rest.find(closing, 2)
        if end >= 0:
            return rest[: end + 2]
    line = rest.partition("\n")[0]
    end_of_sentence = _SENTENCE_END.search(line)
    return line[: end_of_sentence.start()] if end_of_sentence else line
