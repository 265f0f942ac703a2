"""Lines and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llenvs.core.segmentation.protected import fenced_code
from llenvs.core.segmentation.segmenter import Segmenter

_GAP = re.compile(r"(?<!\s)[^\S\r\n]*+[\r\n]\s*+(?=\S)")  # all white space in a row: a long run is looked at once
_BREAK = re.compile(r"\r\n|\n|\r")


def line_boundaries(text: str, *, paragraphs: bool = False) -> Iterable[int]:
    """Where lines that are not blank begin, but for the first; with `paragraphs` those after blank lines alone."""
    for gap in _GAP.finditer(text):
        breaks = list(_BREAK.finditer(gap[0]))
        if len(breaks) > paragraphs:
            yield gap.start() + breaks[-1].end()


class LineSegmenter(Segmenter):
    """One line a segment, its line break and the blank lines after it included.

    Lines end in LF, CR LF or CR.
    """

    name = "line"

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        return line_boundaries(text)

    def settled_until(self, text: str) -> int:
        """See `Segmenter.settled_until`."""
        return len(text.rstrip())


class ParagraphSegmenter(Segmenter):
    """One paragraph a segment, the blank lines after it included; fenced code is never cut."""

    name = "paragraph"

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        return fenced_code(text).filtered(list(line_boundaries(text, paragraphs=True)))

    def settled_until(self, text: str) -> int:
        """See `Segmenter.settled_until`."""
        return len(text.rstrip())
