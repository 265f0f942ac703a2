"""Extractors that take the text, or its end, as it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction.extractor import Extractor


@dataclass(frozen=True)
class RawExtractor(Extractor):
    """The text itself, character for character, the empty text too."""

    name: ClassVar[str] = "raw"
    empty_is_an_answer: ClassVar[bool] = True
    before: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on the whole text first"}
    )
    after: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    def _find(self, text: str) -> str | None:
        return text


@dataclass(frozen=True)
class LastLineExtractor(Extractor):
    """The last line that is not blank."""

    name: ClassVar[str] = "last_line"

    def _find(self, text: str) -> str | None:
        return text.rstrip().replace("\r", "\n").rpartition("\n")[2]


@dataclass(frozen=True)
class TailExtractor(Extractor):
    """The last `count` characters or words."""

    name: ClassVar[str] = "tail"
    count: int = field(default=200, metadata={"doc": "how many, at least 1"})
    unit: Literal["characters", "words"] = field(default="characters", metadata={"doc": "what is counted"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count < 1:
            raise InvalidOption("count", self.count, "is too small", valid="1 or more")

    def _find(self, text: str) -> str | None:
        text = text.rstrip()
        if self.unit == "characters":
            return text[-self.count :]
        parts = text.rsplit(None, self.count)
        return text[len(parts[0]) :] if len(parts) > self.count else text
