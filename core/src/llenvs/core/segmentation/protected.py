"""Code and LaTeX inside a text: spans that no segment boundary may cut.

Fenced and inline code are found as CommonMark has them (https://spec.commonmark.org/0.31.2/, fenced code blocks
and code spans), dollars as pandoc has them (extension tex_math_dollars): an opening ``$`` has no white space after
it, a closing one none before it and no digit after it, so that "$5 and $6" is money. LaTeX without a delimiter is
found where braces tell how far it goes: in the arguments of a command, such as ``\\boxed{...}``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

_MARK = re.compile(r"[`~$\\]")
_FENCE = re.compile(r"(?P<bar>`{3,}+)[^`\r\n]*(?=[\r\n]|\Z)|(?P<wave>~{3,}+)[^\r\n]*")
_OPENER = re.compile(
    r"""
      (?P<ticks>`+)
    | (?P<escaped>\\[\\$`])
    | (?P<bracket>\\[\[(])
    | \\begin\{(?P<block>[A-Za-z]{1,40}\*?)\}
    | (?P<command>\\[A-Za-z]{1,40}\*?)(?=\{)
    | (?P<dollars>\$\$?)
    """,
    re.VERBOSE,
)
_NUMEROUS_CLOSER = re.compile(r"`++|\\end\{[A-Za-z]{1,40}\*?\}")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BLANK_LINE = re.compile(r"(?:\r\n|\n|\r)[ \t]*(?:\r\n|\n|\r)")
_DOLLAR = re.compile(r"(?<!\\)(?:\\\\)*(?P<dollar>\$)")


class Protected(NamedTuple):
    """Spans of a text.

    Attributes:
        spans: ``(begin, end)`` offsets, ascending and apart.
        open_from: where something begins of which only the text to come tells whether it is code or LaTeX; None
            for nowhere, and always for a text that is complete.
    """

    spans: tuple[tuple[int, int], ...]
    open_from: int | None = None

    def outside(self, matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
        """Those of `matches`, in order, that begin in no span."""
        spans = iter(self.spans)
        span = next(spans, None)
        for match in matches:
            while span is not None and span[1] <= match.start():
                span = next(spans, None)
            if span is None or match.start() < span[0]:
                yield match

    def filtered(self, boundaries: list[int]) -> list[int]:
        """The ascending `boundaries` that are inside no span and not after `open_from`."""
        kept, spans = [], iter(self.spans)
        span = next(spans, None)
        for boundary in boundaries:
            if self.open_from is not None and boundary > self.open_from:
                break
            while span is not None and span[1] <= boundary:
                span = next(spans, None)
            if span is None or boundary <= span[0]:
                kept.append(boundary)
        return kept


def protected(text: str, *, complete: bool = True) -> Protected:
    """Code and LaTeX in `text`; for `complete` see `Segmenter.boundaries`."""
    spans: list[tuple[int, int]] = []
    closers = _Closers(text)
    position = 0
    while (mark := _MARK.search(text, position)) is not None:
        fence = _fence_at(text, mark.start())
        if fence is not None:
            if not complete and not _has_break(text, mark.start(), fence[1]):
                return Protected(tuple(spans), fence[0])  # a back tick in its first line makes it none
            spans.append(fence)
            position = max(fence[1], mark.end())
            continue
        opener = _OPENER.match(text, mark.start())
        position = mark.end() if opener is None else opener.end()
        if opener is None or opener["escaped"]:
            continue
        end = _end_of(text, opener, closers, complete)
        if end is None:
            return Protected(tuple(spans), opener.start())
        if end > opener.end():
            spans.append((opener.start(), end))
            position = end
    return Protected(tuple(spans))


def fenced_code(text: str) -> Protected:
    """Fenced code blocks alone. They need no look ahead: one that is not closed goes on to the end."""
    spans: list[tuple[int, int]] = []
    position = 0
    while (mark := _FENCE.search(text, position)) is not None:
        fence = _fence_at(text, mark.start())
        position = mark.end()
        if fence is not None:
            spans.append(fence)
            position = max(position, fence[1])
    return Protected(tuple(spans))


def _fence_at(text: str, place: int) -> tuple[int, int] | None:
    """The fenced code block whose opening fence begins at `place`, after at most three spaces, if there is one."""
    begin = place
    while begin > max(0, place - 3) and text[begin - 1] == " ":
        begin -= 1
    if begin > 0 and text[begin - 1] not in "\r\n":
        return None
    opener = _FENCE.match(text, place)
    if opener is None:
        return None
    bar = opener["bar"] or opener["wave"]
    closing = re.compile(rf"(?:^|(?<=\r))[ ]{{0,3}}{bar[0]}{{{len(bar)},}}[ \t]*(?=[\r\n]|\Z)", re.MULTILINE)
    closer = closing.search(text, opener.end())
    return begin, len(text) if closer is None else closer.end()


def _has_break(text: str, begin: int, end: int) -> bool:
    return text.find("\n", begin, end) >= 0 or text.find("\r", begin, end) >= 0


class _Closers:
    """Finds what closes code and LaTeX. What was not found once is not looked for again, and closers of which
    there are many kinds are looked for once for all, so that text full of openers takes no longer than other text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._blank = -1
        self._missing: dict[str, int] = {}

    def paragraph_end(self, begin: int) -> int:
        """Where the next blank line is, or the text ends."""
        if self._blank < begin:
            found = _BLANK_LINE.search(self._text, begin)
            self._blank = len(self._text) if found is None else found.start()
        return self._blank

    def after(self, closer: str, begin: int, limit: int) -> int | None:
        """Where the next `closer` ends, if it ends up to `limit`: ``\\\\]``, ``\\\\)`` or ``$$``."""
        if self._missing.get(closer, -1) >= limit:
            return None
        place = self._text.find(closer, begin, limit)
        if place < 0:
            self._missing[closer] = limit
            return None
        return place + len(closer)

    def numerous_after(self, closer: str, begin: int, limit: int) -> int | None:
        """The same for ``\\\\end{...}`` and a run of back ticks, which must be the whole run."""
        ends = self._numerous.get(closer, [])
        found = bisect_left(ends, begin + len(closer))
        return ends[found] if found < len(ends) and ends[found] <= limit else None

    @cached_property
    def _numerous(self) -> dict[str, list[int]]:
        """Where each closer with many kinds ends, ascending."""
        ends: dict[str, list[int]] = {}
        for closer in _NUMEROUS_CLOSER.finditer(self._text):
            ends.setdefault(closer[0], []).append(closer.end())
        return ends

    def braces_end(self, begin: int, limit: int) -> int | None:
        """Where the brace at `begin` is closed, if that is before `limit`."""
        end = self._braces.get(begin)
        return end if end is not None and end <= limit else None

    @cached_property
    def _braces(self) -> dict[int, int]:
        """For each opening brace that is closed, where."""
        closed: dict[int, int] = {}
        opened: list[int] = []
        for brace in _BRACE.finditer(self._text):
            if brace[0] == "{":
                opened.append(brace.start())
            elif brace[0] == "}" and opened:
                closed[opened.pop()] = brace.end()
        return closed


def _end_of(text: str, opener: re.Match[str], closers: _Closers, complete: bool) -> int | None:
    """Where what `opener` opens ends; its own end when it opens nothing; None when that is still open."""
    begin = opener.end()
    if not complete and begin == len(text):
        return None  # `$` may become `$$`, and more back ticks may follow
    if opener["block"]:
        end = closers.numerous_after(f"\\end{{{opener['block']}}}", begin, len(text))
        return end if end is not None else begin if complete else None
    limit = closers.paragraph_end(begin)
    undecided = not complete and limit == len(text)
    if opener["dollars"] == "$":
        return _after_dollar(text, opener, limit, undecided)
    if opener["command"]:
        return _after_command(text, begin, closers, limit, undecided)
    if opener["ticks"]:
        end = closers.numerous_after(opener["ticks"], begin, limit)
        still_open = end is None or end == len(text)  # more back ticks make it another run
    else:
        end = closers.after({"\\[": "\\]", "\\(": "\\)"}.get(opener[0], opener[0]), begin, limit)
        still_open = end is None
    if undecided and still_open:
        return None
    return begin if end is None else end


def _after_command(text: str, begin: int, closers: _Closers, limit: int, undecided: bool) -> int | None:
    """Where the arguments end that begin at `begin`, in braces and one right after the other."""
    end = begin
    while text.startswith("{", end):
        closed = closers.braces_end(end, limit)
        if closed is None:
            return None if undecided else end
        end = closed
    return None if undecided and end == len(text) else end


def _after_dollar(text: str, opener: re.Match[str], limit: int, undecided: bool) -> int | None:
    literal = opener.end()
    before, after = text[opener.start() - 1 : opener.start()], text[literal : literal + 1]
    if before.isalnum() or not after or after.isspace():
        return literal
    closer = _DOLLAR.search(text, literal, limit)
    if closer is None:
        return None if undecided else literal
    place = closer.start("dollar")
    if place + 1 == len(text) and undecided:
        return None
    following = text[place + 1 : place + 2]
    if text[place - 1].isspace() or following.isdigit():
        return literal
    return place + 1
