"""Segmenters made of a regular expression or a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from llenvs.core.errors import InvalidOption
from llenvs.core.segmentation.segmenter import Segmenter

Splitter = Callable[[str], Iterable[str] | Iterable[int]]
"""Gives the segments of a text, or the offsets at which they end."""


class CustomSegmenter(Segmenter):
    r"""Segments by a regular expression, or by any function.

    ```python
    CustomSegmenter(r"\n\n---\n\n")                        # after each separator
    CustomSegmenter(r"(?:Thought|Action):", cut="before")  # before each of these words
    CustomSegmenter(lambda text: text.splitlines(keepends=True))
    ```

    How it will judge a text that goes on cannot be known, so while a text is being written all its boundaries but
    the last count as settled.

    Args:
        by: a regular expression (text or compiled), or a function of the text that gives its segments or the
            offsets in characters at which they end.
        cut: with a regular expression, whether the text is cut "after" each match or "before" it.

    Raises:
        InvalidOption: `by` is neither, or no regular expression; on use, when the segments of the function do not
            concatenate to the text.
    """

    name = "custom"
    blank_segments = True

    def __init__(self, by: str | re.Pattern[str] | Splitter, *, cut: Literal["after", "before"] = "after") -> None:
        if cut not in ("after", "before"):
            raise InvalidOption("cut", cut, "must be a place", valid='"after", "before"')
        if isinstance(by, str):
            try:
                by = re.compile(by)
            except re.error as error:
                raise InvalidOption("by", by, f"is no regular expression ({error})") from None
        if not isinstance(by, re.Pattern) and not callable(by):
            raise InvalidOption("by", by, "must be a regular expression or a function of a text")
        if isinstance(by, re.Pattern) and not isinstance(by.pattern, str):
            raise InvalidOption("by", by.pattern, "must be a regular expression for text, not for bytes")
        self.by = by
        self.cut = cut

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        if isinstance(self.by, re.Pattern):
            found = [m.end() if self.cut == "after" else m.start() for m in self.by.finditer(text)]
        else:
            found = _offsets(self.by(text), text)
        found = sorted({b for b in found if 0 < b < len(text)})
        return found if complete else found[:-1]

    def __repr__(self) -> str:
        if isinstance(self.by, re.Pattern):
            return (
                f"CustomSegmenter({self.by.pattern!r}{'' if self.cut == 'after' else ', cut=' + repr(self.cut)})"
            )
        return f"CustomSegmenter({getattr(self.by, '__name__', type(self.by).__name__)})"


def _offsets(result: Any, text: str) -> list[int]:
    """The offsets of `result`, what the function of a `CustomSegmenter` gave for `text`."""
    if isinstance(result, str) or not isinstance(result, Iterable):
        raise InvalidOption("by", result, "must give a list, of texts or of offsets")
    given = list(result)
    if all(type(each) is int for each in given):
        outside = [each for each in given if not 0 <= each <= len(text)]
        if outside:
            problem = f"gave offsets outside of a text of {len(text)} characters"
            raise InvalidOption("by", outside[0], problem, valid=f"0 to {len(text)}")
        return given
    if not all(isinstance(each, str) for each in given):
        raise InvalidOption("by", given, "must give texts, or offsets as integers")
    joined = "".join(given)
    if joined != text:
        at = next(
            (i for i, (a, b) in enumerate(zip(joined, text, strict=False)) if a != b), min(len(joined), len(text))
        )
        raise InvalidOption(
            "by",
            given,
            f"gave segments that do not concatenate to the text: they differ at offset {at} "
            f"({joined[at : at + 20]!r} for {text[at : at + 20]!r}); keep separators, give them to a segment",
        )
    ends, position = [], 0
    for each in given:
        position += len(each)
        ends.append(position)
    return ends
