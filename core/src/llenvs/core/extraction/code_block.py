"""The last fenced code block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from llenvs.core.extraction.extractor import Extractor

_ALIASES = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "ts": "typescript",
    "sh": "bash",
    "shell": "bash",
    "c++": "cpp",
    "yml": "yaml",
    "rs": "rust",
    "golang": "go",
}


@dataclass(frozen=True)
class CodeBlockExtractor(Extractor):
    """The content of the last fenced code block (three or more backticks or tildes), indentation kept.

    As in CommonMark (section 4.5), a fence is closed by one of the same kind that is at least as long.
    An opening fence may also stand at the end of a line of prose, as small models write it.
    """

    name: ClassVar[str] = "code_block"
    language: str | None = field(
        default=None,
        metadata={"doc": "only blocks marked with this language, 'py' being 'python'; all without it"},
    )
    allow_unclosed: bool = field(
        default=True, metadata={"doc": "whether a block that the end of the text cuts off counts"}
    )
    after: tuple[str, ...] = field(
        default=("blank_lines",), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    def _find(self, text: str) -> str | None:
        found: str | None = None
        opening: tuple[str, str] | None = None  # the fence and its info string
        block: list[str] = []
        for line in text.split("\n"):
            if opening is None:
                opening = _opening_fence(line)
                block = []
            elif _closes(line, opening[0]):
                if self._wanted(opening[1]):
                    found = "\n".join(block)
                opening = None
            else:
                block.append(line)
        if opening is not None and self.allow_unclosed and self._wanted(opening[1]):
            cut_off = "\n".join(block)
            if cut_off.strip():
                found = cut_off
        return found

    def _wanted(self, info: str) -> bool:
        if self.language is None:
            return True
        words = info.replace("{", " ").replace("}", " ").replace(",", " ").split()
        return bool(words) and _canonical(words[0].lstrip(".")) == _canonical(self.language)


def _canonical(language: str) -> str:
    folded = language.casefold()
    return _ALIASES.get(folded, folded)


def _opening_fence(line: str) -> tuple[str, str] | None:
    stripped = line.strip()
    mark = stripped[:1]
    if mark in ("`", "~") and stripped.startswith(mark * 3):
        info = stripped.lstrip(mark)
        # A backtick later in the line makes it inline code, not a fence.
        return None if mark == "`" and "`" in info else (stripped[: len(stripped) - len(info)], info.strip())
    before, fence, info = stripped.rpartition("```")
    if fence and "`" not in before.rstrip("`") and len(info.split()) <= 1:
        return fence + "`" * (len(before) - len(before.rstrip("`"))), info.strip()
    return None


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])
