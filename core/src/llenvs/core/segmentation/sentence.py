"""Sentences.

Written after looking for a library: of pysbd 0.3.4, syntok 1.4.4 and blingfire 0.1.8 none keeps LaTeX or code
whole, none says which boundaries are settled while a text is still being written, and each takes 6 of 16 texts of
reasoning apart wrongly (in 7.6, 0.9 and 0.2 ms for each KB).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llenvs.core.errors import InvalidOption
from llenvs.core.segmentation.abbreviations import ALWAYS_GO_ON, BEFORE_A_NUMBER, MAY_END, STARTERS
from llenvs.core.segmentation.lines import line_boundaries
from llenvs.core.segmentation.protected import protected
from llenvs.core.segmentation.segmenter import Segmenter, words

# each begins where a run of marks begins: a long run that ends nothing is then looked at once
_MARKS = ".!?…‽؟۔।॥։።។။"
_EMOJI = r"\u2600-\u27bf\ufe0f\u200d\U0001f300-\U0001faff"
_STOP = re.compile(
    rf"[{_MARKS}](?<![.!?…][{_MARKS}])(?P<more>[.!?…]*+)"
    rf"""["'”’»)\]}}*_{_EMOJI}]*+(?=(?P<gap>\s++)(?P<next>\S))"""
)
_WIDE = re.compile(
    r"[。！？｡](?<![。！？｡]{2})[。！？｡]*+[」』”’）)\]]*+(?=(?P<gap>\s*+)\S)"
)  # no white space is needed
_OPENING = "([{\"'“‘«*_"
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_ENUMERATOR = re.compile(r"[ \t]*+(?:[*_#>+-]++[ \t]*+)*+[(]?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})")
_ACRONYM = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_WINDOW = 64  # characters before a full stop that are looked at
_GO_ON = ".,;:!?)]}%=+/>^|&×÷≠≤≥≈"
_DASHES = "-–—"
_SENTENCE_ENDS = ".!?…"


class SentenceSegmenter(Segmenter):
    """One sentence a segment.

    A sentence ends at a full stop, question or exclamation mark or ellipsis (emoji and what closes quotes and
    brackets after it included) when white space and then something that can begin a sentence follows; not after
    abbreviations, initials and list numbers, not inside decimals, and never inside code or LaTeX. Chinese and
    Japanese marks need no white space after them. White space between two sentences goes with the second one
    (" There are 2 dogs."), as it does in the tokens of language models, except that a line break ends the first.

    Args:
        split_lines: whether a line break ends a sentence too, as in lists and in steps without full stops; a blank
            line always does.
        abbreviations: further ones after which a sentence goes on, without the last full stop; case is ignored.

    Raises:
        InvalidOption: naming the argument.
    """

    name = "sentence"

    def __init__(self, *, split_lines: bool = True, abbreviations: Iterable[str] = ()) -> None:
        if not isinstance(split_lines, bool):
            raise InvalidOption("split_lines", split_lines, "must be True or False")
        self.split_lines = split_lines
        given = words("abbreviations", abbreviations)
        self.abbreviations = frozenset(each.removesuffix(".").casefold() for each in given)

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        spans = protected(text, complete=complete)
        found = set(line_boundaries(text, paragraphs=not self.split_lines))
        for end in spans.outside(_STOP.finditer(text)):
            if self._ends(text, end, complete):
                found.add(end.end() + _after_last_break(end["gap"]))
        for end in spans.outside(_WIDE.finditer(text)):
            found.add(end.end() + _after_last_break(end["gap"]))
        return spans.filtered(sorted(found))

    def settled_until(self, text: str) -> int:
        """See `Segmenter.settled_until`."""
        said = text.rstrip()
        decided = len(said.rsplit(None, 1)[0]) if len(said.split(None, 1)) > 1 else 0
        opened = protected(text, complete=False).open_from
        return decided if opened is None else min(decided, opened)

    def _ends(self, text: str, end: re.Match[str], complete: bool) -> bool:
        """Whether the mark `end` ends a sentence."""
        following = end["next"]
        if following.islower() or following in _GO_ON:
            return False
        if following in _DASHES and not _after_last_break(end["gap"]):
            return False
        if following == "<" and not _opens_tag(text, end.start("next")):
            return False
        before = text[max(0, end.start() - _WINDOW) : end.start()]
        if text[end.start()] != "." or end["more"]:
            return not (following.isdigit() and before.rstrip()[-1:] in (*",+-*=·", ""))  # "1, 2, ... 10"
        if end.end() == end.start() + 1 and _ENUMERATOR.fullmatch(before, _after_last_break(before)):
            return False
        word = _last_word(before)
        folded = word.casefold()
        if folded in ALWAYS_GO_ON or folded in self.abbreviations:
            return False
        if folded in BEFORE_A_NUMBER:
            return not following.isdigit()
        place = end.start("next")
        may_go_on = (
            folded in MAY_END
            or _ACRONYM.fullmatch(word)
            or _is_initial(word, before[: -len(word)])
            or _begins_initials(word, text[place : place + 2], complete)
        )
        return not may_go_on or _is_starter(text, place, complete)

    def __repr__(self) -> str:
        options = [] if self.split_lines else ["split_lines=False"]
        if self.abbreviations:
            options.append(f"abbreviations={sorted(self.abbreviations)}")
        return f"SentenceSegmenter({', '.join(options)})"


def _after_last_break(gap: str) -> int:
    """Offset after the last line break of the white space `gap`; 0 when it has none."""
    return max(gap.rfind("\n"), gap.rfind("\r")) + 1


def _last_word(before: str) -> str:
    """The word with which `before` ends, what opens it left out; "" after white space."""
    if before[-1:].isspace():
        return ""
    word = before.split()[-1] if before else ""
    return word[max(map(word.rfind, _OPENING)) + 1 :]


def _opens_tag(text: str, place: int) -> bool:
    following = text[place + 1 : place + 2]
    return following.isalpha() or following == "/"


def _is_starter(text: str, place: int, complete: bool) -> bool:
    """Whether a word with which sentences begin is at `place`; not yet while it may go on."""
    word = _FIRST_WORD.match(text, place)
    if word is None or (word.end() == len(text) and not complete):
        return False
    return word[0] in STARTERS


def _is_initial(word: str, before: str) -> bool:
    """Whether `word` is an initial by what is `before` it: one capital letter, after another name ("John F.") or
    where a sentence or a bracket begins."""
    if len(word) != 1 or not word.isupper():
        return False
    earlier = before.split()
    if not earlier or not before[-1].isspace():
        return True
    last = earlier[-1]
    return last[-1] in _SENTENCE_ENDS or (last[0].isupper() and last.isalpha())


def _begins_initials(word: str, following: str, complete: bool) -> bool:
    """Whether `word` is an initial by the two characters after it: another initial ("by J. R. Smith"), also while
    that may still come."""
    if len(word) != 1 or not word.isupper() or not following[0].isupper():
        return False
    return following[1:] == "." or (len(following) == 1 and not complete)
