"""Numbered steps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llenvs.core.segmentation.protected import fenced_code
from llenvs.core.segmentation.segmenter import Segmenter, words


class NumberedStepSegmenter(Segmenter):
    """One numbered step a segment; what stands before the first number is a segment of its own.

    A step begins with "1.", "1)", "(1)" or "Step 1" at the beginning of a line (indented by at most three spaces;
    after Markdown's ``#``, ``-``, ``*`` and ``**``), or with "Step 1" after the end of a sentence. Numbers have at
    most three digits and need not be in order. Fenced code is never cut.

    Args:
        labels: words before the number, in place of "step"; case is ignored.

    Raises:
        InvalidOption: `labels` are no words.
    """

    name = "numbered_step"

    def __init__(self, labels: Iterable[str] = ("step",)) -> None:
        self.labels = words("labels", labels)
        self._steps = {complete: self._pattern(complete) for complete in (True, False)}

    def _pattern(self, complete: bool) -> re.Pattern[str]:
        """Where steps begin; a marker at the very end counts only when nothing can make another of it."""
        labels = "|".join(re.escape(label) for label in self.labels)
        end = r"(?=\W|\Z)" if complete else r"(?=\W)"
        labelled = rf"(?:{labels})[ \t]+\d{{1,3}}{end}" if labels else r"(?!)"
        numbered = r"(?:\d{1,3}[.)]|\(\d{1,3}\))(?=\s)"
        return re.compile(
            rf"(?P<line>(?:^|(?<=\r))(?=[ ]{{0,3}}(?:[#>*+_-]++[ \t]*+)*+(?:{labelled}|{numbered})))"
            rf"|(?<=[.!?:])[*_\"')\]]*(?P<within>[ \t]+)(?=[*_]*{labelled})",
            re.IGNORECASE | re.MULTILINE,
        )

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        found = [
            m.start("line") if m["line"] is not None else m.start("within")
            for m in self._steps[complete].finditer(text)
        ]
        return fenced_code(text).filtered(found)

    def settled_until(self, text: str) -> int:
        """See `Segmenter.settled_until`."""
        return max(text.rfind("\n"), text.rfind("\r")) + 1

    def __repr__(self) -> str:
        return f"NumberedStepSegmenter({'' if self.labels == ('step',) else repr(self.labels)})"
