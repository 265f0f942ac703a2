r"""The last ``\boxed{..}``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.extraction.boxes import last_box
from llenvs.core.extraction.extractor import Extractor


@dataclass(frozen=True)
class BoxedExtractor(Extractor):
    r"""The argument of the last complete ``\boxed{..}`` or ``\fbox{..}``.

    Braces nest; escaped ones do not count; ``\boxed 5`` counts; of boxes inside each other the inner one.
    """

    name: ClassVar[str] = "boxed"
    after: tuple[str, ...] = field(
        default=("whitespace", "latex"), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    def _find(self, text: str) -> str | None:
        box = last_box(text)
        return None if box is None else box.content
