"""Segmenters put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from llenvs.core.errors import InvalidOption
from llenvs.core.segmentation.segmenter import Segmenter, checked_segmenter

_MODES = ("any", "all", "first")


class CompositeSegmenter(Segmenter):
    """Several segmenters as one.

    Args:
        segmenters: at least one.
        boundary: where a text is cut: "any" where any of them cuts it (paragraphs, and sentences in them); "all"
            where all do; "first" as the first of them does that cuts it at all (numbered steps where there are
            some, else lines).
    """

    name = "composite"
    blank_segments = True  # of each segmenter as it wants

    def __init__(self, *segmenters: Segmenter, boundary: Literal["any", "all", "first"] = "any") -> None:
        if not segmenters:
            raise InvalidOption("segmenters", segmenters, "must hold at least one")
        if boundary not in _MODES:
            raise InvalidOption(
                "boundary", boundary, "is no way to put segmenters together", valid=", ".join(_MODES)
            )
        self.segmenters = tuple(checked_segmenter(each) for each in segmenters)
        self.boundary = boundary

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        if self.boundary == "first":
            return self._chosen(text, complete).boundaries(text, complete=complete)
        sets = [set(each.boundaries(text, complete=complete)) for each in self.segmenters]
        if self.boundary == "all":
            found = set.intersection(*sets)
        else:
            found = set.union(*sets)
        limit = len(text) if complete else self.settled_until(text)
        return [b for b in found if b <= limit]

    def settled_until(self, text: str) -> int:
        """See `Segmenter.settled_until`."""
        if self.boundary == "first":
            return self._chosen(text, False).settled_until(text) if self._is_chosen(text) else 0
        return min(each.settled_until(text) for each in self.segmenters)

    def _chosen(self, text: str, complete: bool) -> Segmenter:
        """The one that divides `text`; while the text goes on the first, which may still find something."""
        if complete:
            return next((each for each in self.segmenters if each.boundaries(text)), self.segmenters[0])
        return self.segmenters[0]

    def _is_chosen(self, text: str) -> bool:
        return bool(self.segmenters[0].boundaries(text, complete=False))

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.segmenters))
        return f"CompositeSegmenter({inner}{'' if self.boundary == 'any' else f', boundary={self.boundary!r}'})"
