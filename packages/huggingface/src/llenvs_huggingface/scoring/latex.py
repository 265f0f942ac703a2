"""LaTeX answers as text: what to compare, and the spelling in which equal answers look equal most often."""

from __future__ import annotations

import re

from llenvs.core.extraction.boxes import last_box
from llenvs.core.extraction.cleaners import clean_until_stable
from llenvs_huggingface.scoring.number import WRAPPINGS

_TAG = re.compile(r"</?[A-Za-z]\w{0,30}\s{0,4}>")
_SPACES = re.compile(r"\s+|\\[,;:!]|\\(?:quad|qquad)(?![A-Za-z])|~")
_SHORT_FRACTION = re.compile(r"\\frac([0-9])([0-9])")
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\{([^{}]{0,200})\}")
_SPELLINGS = (
    ("\\dfrac", "\\frac"),
    ("\\tfrac", "\\frac"),
    ("\\cfrac", "\\frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\degree", ""),
    ("\\$", ""),
    ("$", ""),
    ("\\le ", "\\leq "),
    ("\u2212", "-"),
)
_INLINE = re.compile(r"\$([^$]{1,1000})\$|\\\(([^$]{1,1000}?)\\\)|\\\[([^$]{1,1000}?)\\\]")
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}(?![A-Za-z}(])")
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[ '-][^\W\d_]+){0,12}")


def bare_answer(text: str) -> str:
    r"""`text` without tags such as ``<answer>``, and of the last ``\boxed{..}`` in it the argument alone."""
    box = last_box(text)
    if box is not None:
        text = box.content
    return clean_until_stable(_TAG.sub("", text), WRAPPINGS)


def is_prose(text: str) -> bool:
    """Whether `text` is a sentence: two words or more outside of mathematics and LaTeX commands."""
    return len(_PLAIN_WORD.findall(_INLINE.sub(" ", text))) >= 2


def last_formula(text: str) -> str | None:
    r"""The last ``$..$``, ``\(..\)`` or ``\[..\]`` in `text` that holds no words (two prices make no formula)."""
    found = None
    for match in _INLINE.finditer(text):
        inner = match[1] or match[2] or match[3]
        if not _PLAIN_WORD.search(_TEXT.sub("", inner)):
            found = inner.strip()
    return found


def spelling(text: str) -> str:
    r"""`text` in one spelling: no spaces, no ``\left``, ``\dfrac`` as ``\frac``, ``\text{..}`` as its words."""
    for old, new in _SPELLINGS:
        text = text.replace(old, new)
    text = _SPACES.sub("", _TEXT.sub(r"\1", text))
    return _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)


def words(text: str) -> str | None:
    r"""The words that `text` consists of (``\text{Ann}``, ``Ann``), in lower case; None where there is more."""
    plain = " ".join(_TEXT.sub(r"\1", text).split())
    return plain.casefold() if _WORDS.fullmatch(plain) else None
