"""The last ``<answer>..</answer>``."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction.cleaners import HIDDEN_TAGS
from llenvs.core.extraction.extractor import Extractor


@functools.lru_cache(maxsize=64)
def _tags(tag: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(rf"<(/?){re.escape(tag)}\s{{0,8}}>", re.IGNORECASE if ignore_case else 0)


@dataclass(frozen=True)
class TagBasedExtractor(Extractor):
    """What stands in the last complete pair of tags, ``<answer>..</answer>``.

    A pair is a closing tag and the nearest opening tag before it, so a tag that is only talked about does no harm.
    """

    name: ClassVar[str] = "tag_based"
    tag: str = field(default="answer", metadata={"doc": "the name between the angle brackets"})
    ignore_case: bool = field(default=True, metadata={"doc": "whether <Answer> counts too"})
    allow_unclosed: bool = field(
        default=False,
        metadata={
            "doc": "whether an opening tag that nothing closes counts (for runs that stop at the closing tag)"
        },
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tag or re.search(r"[\s<>/]", self.tag):
            raise InvalidOption("tag", self.tag, "is no tag name", valid="the bare name, such as answer")
        for cleaner in self.before:
            if self.tag.lower() in HIDDEN_TAGS.get(cleaner, ()):
                problem = f"is a block that the cleaner {cleaner!r} removes before the search"
                raise InvalidOption(
                    "tag", self.tag, problem, valid=f"a 'before' without {cleaner!r}, or another tag"
                )

    def _find(self, text: str) -> str | None:
        tags = _tags(self.tag, self.ignore_case)
        found: tuple[int, int] | None = None
        opened: int | None = None
        for match in tags.finditer(text):
            if not match[1]:
                opened = match.end()
            elif opened is not None:
                found = (opened, match.start())
                opened = None
        if self.allow_unclosed and opened is not None and text[opened:].strip():
            found = (opened, len(text))
        return None if found is None else text[found[0] : found[1]]
