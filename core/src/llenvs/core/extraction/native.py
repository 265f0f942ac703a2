"""The upstream's own extraction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.extraction.extractor import Extractor


@dataclass(frozen=True)
class NativeExtractor(Extractor):
    """Leaves the extraction to the benchmark, so that a score is the benchmark's own.

    Unbound, it hands the text on as it is, for a scorer that extracts by itself. An environment whose upstream
    extracts in a step of its own calls `bind(function)`; what the function returns is then the answer, even if
    empty, and what it raises is the upstream's error, for the environment to report.
    """

    name: ClassVar[str] = "native"
    empty_is_an_answer: ClassVar[bool] = True
    function: Callable[[str], str | None] | None = field(
        default=None, metadata={"doc": "the upstream's extraction, set by the environment", "internal": True}
    )
    before: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on the whole text first"}
    )
    after: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    @property
    def is_bound(self) -> bool:
        """Whether an upstream's function does the work."""
        return self.function is not None

    def bind(self, function: Callable[[str], str | None]) -> NativeExtractor:
        """This extractor doing its work by `function`."""
        return self.replace(function=function)

    def _find(self, text: str) -> str | None:
        return text if self.function is None else self.function(text)
