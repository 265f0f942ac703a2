"""The last number."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.extraction.extractor import Extractor
from llenvs.core.extraction.number import NUMBER, plain_number

_NUMBER = re.compile(NUMBER)
_CURRENCY_CODE = re.compile(r"(?:USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD|Rs)$")

# How many numbers from the end may be passed over in search of one that stands free.
_LOOK_BACK = 1000


@dataclass(frozen=True)
class NumericExtractor(Extractor):
    r"""The last number, in one plain form: ``-1234.5``, ``3/4``, ``3e6``, ``2^10``.

    Knows signs, thousands separators, decimals, exponents, fractions and their LaTeX forms; drops currency signs.
    Digits of a word, an index or an exponent (``H2O``, ``x_1``, ``x^2``) count only where no other number is.
    """

    name: ClassVar[str] = "numeric"
    keep_percent: bool = field(default=False, metadata={"doc": "whether 50% is '50%' rather than '50'"})

    def _find(self, text: str) -> str | None:
        latest = deque(_NUMBER.finditer(text), maxlen=_LOOK_BACK)
        if not latest:
            return None
        free = (match for match in reversed(latest) if not _is_attached(text, match.start()))
        return plain_number(next(free, latest[-1]), keep_percent=self.keep_percent)


def _is_attached(text: str, start: int) -> bool:
    """Whether the number at `start` is part of a word, an index or an exponent."""
    before = text[start - 1 : start]
    if before == "{":
        before = text[start - 2 : start - 1] if start >= 2 else ""
        return before in ("_", "^")
    if before in ("_", "^"):
        return True
    if not before.isalpha():
        return False
    begin = start
    # Bounded: no LaTeX command or currency code is longer, and it keeps hostile text linear.
    while begin > max(0, start - 24) and text[begin - 1].isalpha():
        begin -= 1
    is_command = text[begin - 1 : begin] == "\\"
    return not is_command and not _CURRENCY_CODE.fullmatch(text, begin, start)
