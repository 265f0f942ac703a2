"""The last match of a regular expression."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.extraction.extractor import Extractor
from llenvs.core.extraction.last import last_of


@dataclass(frozen=True)
class RegexExtractor(Extractor):
    """The last match of `pattern`, in the syntax of Python's `re`; inline flags such as ``(?is)`` work.

    Only as fast as the pattern: one that backtracks without bound does so here too.
    """

    name: ClassVar[str] = "regex"
    pattern: str = field(metadata={"doc": "the regular expression"})
    group: int | str | None = field(
        default=None, metadata={"doc": "group number or name; by default the first group, or all without groups"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            compiled = re.compile(self.pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidOption("pattern", self.pattern, f"is no regular expression ({error})") from None
        valid = [*range(compiled.groups + 1), *compiled.groupindex]
        if self.group is not None and self.group not in valid:
            raise InvalidOption(
                "group", self.group, "the pattern has no such group", valid=", ".join(map(str, valid))
            )

    def _find(self, text: str) -> str | None:
        compiled = re.compile(self.pattern)
        last = last_of(compiled.finditer(text))
        if last is None:
            return None
        group = self.group if self.group is not None else min(1, compiled.groups)
        found: str | None = last[group]
        return found
