"""A chain of extractors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction.extractor import Extractor


@dataclass(frozen=True)
class CompositeExtractor(Extractor):
    """The answer of the first extractor that finds one. A list in YAML is a composite.

    Each extractor sees the whole text and uses its own cleaners; `before` and `after` here come on top.
    """

    name: ClassVar[str] = "composite"
    # Each extractor of the chain has judged that already.
    empty_is_an_answer: ClassVar[bool] = True
    extractors: tuple[Extractor, ...] = field(metadata={"doc": "names or options of extractors, tried in order"})
    before: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on the whole text first"}
    )
    after: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.extractors:
            raise InvalidOption("extractors", [], "must hold at least one extractor")

    def bind(self, function: Callable[[str], str | None]) -> CompositeExtractor:
        """The same chain with `function` wherever `native` stands in it."""
        return self.replace(extractors=tuple(each.bind(function) for each in self.extractors))

    def _find(self, text: str) -> str | None:
        for extractor in self.extractors:
            found = extractor.extract(text)
            if found is not None:
                return found
        return None
