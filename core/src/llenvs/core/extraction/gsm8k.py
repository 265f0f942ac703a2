"""GSM8K's answer line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.extraction.extractor import Extractor
from llenvs.core.extraction.last import last_of
from llenvs.core.extraction.number import NUMBER, plain_number

_ANSWER = re.compile(rf"####[ \t*]{{0,8}}(?:{NUMBER})")


@dataclass(frozen=True)
class GSM8KExtractor(Extractor):
    """The number after the last ``####`` that a number follows: ``#### 1,234`` gives ``1234``.

    The format of GSM8K's reference solutions (Cobbe et al. 2021, arXiv:2110.14168), which drop commas too;
    this also drops currency and per cent signs. A Markdown heading ``#### Step`` is passed over.
    """

    name: ClassVar[str] = "gsm8k"
    after: tuple[str, ...] = field(
        default=(), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    def _find(self, text: str) -> str | None:
        last = last_of(_ANSWER.finditer(text))
        return None if last is None else plain_number(last)
