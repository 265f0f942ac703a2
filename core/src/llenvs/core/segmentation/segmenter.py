"""What divides a text into segments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

from llenvs.core.errors import InvalidOption


class Segmenter(ABC):
    """Divides a text into segments, none empty, that concatenate to the text.

    A segmenter is asked for boundaries, offsets in characters at which one segment ends and the next begins. While
    a text is still being written it is asked for those that are settled: that no continuation takes back. The
    segments of a text are then the same whether it comes at once or piece by piece.

    Whoever writes one gives `name` and `_boundaries`.
    """

    name: ClassVar[str] = "segmenter"
    blank_segments: ClassVar[bool] = False
    """Whether a segment may be white space alone; else it is made part of the next one, at the end of the last."""

    def boundaries(self, text: str, *, complete: bool = True) -> list[int]:
        """Offsets ``0 < b < len(text)`` where segments of `text` end, ascending.

        Args:
            text: any text.
            complete: False when `text` may go on: then only boundaries that stay whatever follows.

        Raises:
            InvalidOption: `text` is no `str`.
        """
        if not isinstance(text, str):
            raise InvalidOption("text", text, "must be a str to be divided into segments")
        found = sorted({b for b in self._boundaries(text, complete) if 0 < b < len(text)})
        return found if self.blank_segments else _without_blank(text, found)

    def split(self, text: str) -> tuple[str, ...]:
        """The segments of `text`; none for an empty one.

        Raises:
            InvalidOption: `text` is no `str`.
        """
        return cut(text, self.boundaries(text))

    def boundaries_after(self, begin: int, text: str, *, complete: bool = True) -> list[int]:
        """The boundaries of `text` that come after `begin`, where a segment was ended already by somebody else."""
        found = [b for b in self.boundaries(text, complete=complete) if b > begin]
        return found if self.blank_segments else _without_blank(text, found, begin)

    def settled_until(self, text: str) -> int:
        """The offset before which no continuation of `text` adds a boundary or takes one away.

        By default that of the last settled boundary.
        """
        return next(reversed(self.boundaries(text, complete=False)), 0)

    @abstractmethod
    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        """See `boundaries`; in any order, those at the ends are ignored."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def cut(text: str, boundaries: Sequence[int]) -> tuple[str, ...]:
    """`text` cut at ascending `boundaries`, which lie inside of it."""
    if not text:
        return ()
    edges = [0, *boundaries, len(text)]
    return tuple(text[a:b] for a, b in pairwise(edges))


def _without_blank(text: str, boundaries: Sequence[int], begin: int = 0) -> list[int]:
    kept: list[int] = []
    for boundary in boundaries:
        if not text[begin:boundary].isspace():
            kept.append(boundary)
            begin = boundary
    if kept and text[kept[-1] :].isspace():
        kept.pop()
    return kept


def words(field: str, given: object) -> tuple[str, ...]:
    """`given`, a word or several, as a tuple.

    Raises:
        InvalidOption: for `field`, if it is something else.
    """
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(word, str) and word.strip() for word in found):
        raise InvalidOption(field, given, "must be words, none of them blank")
    return found


def checked_segmenter(segmenter: object) -> Segmenter:
    """`segmenter`, if it is one.

    Raises:
        InvalidOption: it is not; a class or a function is told how to be one.
    """
    if isinstance(segmenter, Segmenter):
        return segmenter
    if isinstance(segmenter, type) and issubclass(segmenter, Segmenter):
        problem = f"must be an object: write {segmenter.__name__}()"
    elif callable(segmenter) or isinstance(segmenter, str):
        problem = (
            "must be a Segmenter; a regular expression or a function goes into CustomSegmenter(...), a name into "
            "make_segmenter(...)"
        )
    else:
        problem = "must be a Segmenter"
    valid = "SentenceSegmenter(), LineSegmenter(), ParagraphSegmenter(), NumberedStepSegmenter(), ..."
    raise InvalidOption("segmenter", segmenter, problem, valid=valid)
