"""The chosen letter of a multiple-choice question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction.extractor import Extractor
from llenvs.core.extraction.last import last_of

# After a lone "A" or "I" these words make it a choice ("A because ..."), any other word an article or a pronoun.
_AFTER_A_CHOICE = {"A": frozenset({"and", "as", "because", "but", "for", "if", "is", "or", "since", "which"})}
_AFTER_A_CHOICE["I"] = frozenset({"because", "is", "since"})
_NEXT_WORD = re.compile(r"[ \t]{1,4}([^\W\d_]+)")


@dataclass(frozen=True)
class MultipleChoiceExtractor(Extractor):
    """The letter that a model chose, as written in `choices`.

    A stated choice ("the answer is (B)", "Answer: B", "B is correct", "I choose B") counts before a letter that
    merely stands there ("(B)", "B)", "B.", a bare B); the last of the strongest kind wins. So an explanation that
    goes through the other options after the answer changes nothing. The article "A" and the pronoun "I" are none.
    """

    name: ClassVar[str] = "multiple_choice"
    choices: str = field(
        default="ABCDE", metadata={"doc": "the letters or digits, such as ABCD (a list works too)"}
    )

    def __post_init__(self) -> None:
        if isinstance(self.choices, list | tuple) and all(isinstance(each, str) for each in self.choices):
            if any(len(each) != 1 for each in self.choices):
                raise InvalidOption(
                    "choices", self.choices, "must be single letters or digits", valid="such as ABCD"
                )
            object.__setattr__(self, "choices", "".join(self.choices))
        super().__post_init__()
        folded = self.choices.casefold()
        if not (self.choices.isascii() and self.choices.isalnum()) or len(set(folded)) != len(folded):
            raise InvalidOption(
                "choices", self.choices, "must be different letters or digits", valid="such as ABCD"
            )

    def _find(self, text: str) -> str | None:
        alone = text.strip(" \t\r\n()[]{}.:*_$\"'`")
        stated, standing = _patterns(self.choices)
        canonical = {each.casefold(): each for each in self.choices}
        if alone.casefold() in canonical:
            return canonical[alone.casefold()]
        found = last_of(_letters(stated, text)) or last_of(_letters(standing, text))
        return None if found is None else canonical[found.casefold()]


def _letters(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        group = match.lastgroup or ""
        letter = match[group]
        if group.startswith("open"):  # nothing marks where the letter ends: it may begin a phrase
            allowed = _AFTER_A_CHOICE.get(letter.upper())
            word = _NEXT_WORD.match(text, match.end(group)) if allowed is not None else None
            if allowed is not None and word is not None and word[1].lower() not in allowed:
                continue
        yield letter


def _patterns(choices: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The patterns of a stated choice and of a letter that merely stands there.

    A match's last group holds the letter; the group's name says whether the letter is delimited ("closed")
    or has to be checked against the word that follows ("open").
    """
    either_case = f"[{choices.lower()}{choices.upper()}]"
    upper = f"[{choices.upper()}]"
    wrapping = r"""[\s:*_"'`“‘$]{0,8}(?:\\(?:boxed|fbox|text|textbf|mathrm|mathbf)\s?\{){0,3}\$?"""
    noun = r"(?:(?:[Tt]he\s)?(?:[Oo]ption|[Cc]hoice|[Ll]etter|[Aa]nswer)\s{1,2})?"
    announced = (
        r"(?i:(?<!\w)(?:answer|correct\s(?:option|choice|letter))(?!\w)(?:\s(?:option|choice|letter))?[\s*_]{0,4}"
        r"(?:(?:is|would\sbe|should\sbe|must\sbe)(?!\w)|[:：=])"
        r"|(?<!\w)(?:choose|chose|pick|select|go\swith|going\swith)(?!\w))"
    )
    stated = re.compile(
        rf"{announced}{wrapping}{noun}{wrapping}(?:[(\[](?P<closed1>{either_case})[)\]]"
        rf"|(?P<closed2>{either_case})\)|(?P<open1>{either_case})(?![\w'’]))"
        rf"|(?<![\w'’.-])(?P<closed3>{upper})[)\]*_]{{0,4}}\sis\s(?:the\s)?(?:correct|right|best)(?!\w)"
    )
    standing = re.compile(
        rf"(?<!\w)\((?P<closed1>{either_case})\)|(?<!\w)\[(?P<closed2>{either_case})\]"
        rf"|(?<![\w'’.(-])(?P<closed3>{either_case})[).](?=[\s*_]|$)"
        rf"|(?<![\w'’.-])(?P<open1>{upper})(?![\w'’-])"
    )
    return stated, standing
