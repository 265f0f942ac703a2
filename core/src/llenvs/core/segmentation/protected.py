"""Code and LaTeX inside a text: spans that no segment boundary may cut.

Fenced and inline code are found as CommonMark has them (https://spec.commonmark.org/0.31.2/, fenced code blocks
and code spans), dollars as pandoc has them (extension tex_math_dollars): an opening ``$`` has no white space after
it, a closing one none before it and no digit after it, so that "$5 and $6" is money.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_MARK = re.compile(r"[`~$\\]")
_FENCE = re.compile(r"(?P<bar>`{3,}+)[^`\r\n]*(?=[\r\n]|\Z)|(?P<wave>~{3,}+)[^\r\n]*")
_OPENER = re.compile(
    r"""
      (?P<ticks>`+)
    | (?P<escaped>\\[\\$`])
    | (?P<bracket>\\[\[(])
    | \\begin\{(?P<block>[A-Za-z]{1,40}\*?)\}
    | (?P<dollars>\$\$?)
    """,
    re.VERBOSE,
)
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
    position = 0
    while (mark := _MARK.search(text, position)) is not None:
        fence = _fence_at(text, mark.start())
        if fence is not None:
            spans.append(fence)
            position = max(fence[1], mark.end())
            continue
        opener = _OPENER.match(text, mark.start())
        position = mark.end() if opener is None else opener.end()
        if opener is None or opener["escaped"]:
            continue
        end = _end_of(text, opener, complete)
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


def _end_of(text: str, opener: re.Match[str], complete: bool) -> int | None:
    """Where what `opener` opens ends; its own end when it opens nothing; None when that is still open."""
    if not complete and opener.end() == len(text):
        return None  # `$` may become `$$`, and more back ticks may follow
    if opener["block"]:
        closer = text.find(f"\\end{{{opener['block']}}}", opener.end())
        if closer < 0:
            return opener.end() if complete else None
        return closer + len(f"\\end{{{opener['block']}}}")
    blank = _BLANK_LINE.search(text, opener.end())
    limit = len(text) if blank is None else blank.start()
    undecided = not complete and blank is None
    if opener["ticks"]:
        end = _after_ticks(text, opener, limit)
    elif opener["bracket"]:
        closer = text.find("\\]" if opener["bracket"] == "\\[" else "\\)", opener.end(), limit)
        end = None if closer < 0 else closer + 2
    elif opener["dollars"] == "$$":
        closer = text.find("$$", opener.end(), limit)
        end = None if closer < 0 else closer + 2
    else:
        return _after_dollar(text, opener, limit, undecided)
    if end is None or (undecided and opener["ticks"] and end == len(text)):
        return None if undecided else opener.end() if end is None else end
    return end


def _after_ticks(text: str, opener: re.Match[str], limit: int) -> int | None:
    closing = re.compile(rf"(?<!`)`{{{len(opener['ticks'])}}}(?!`)")
    closer = closing.search(text, opener.end(), limit)
    return None if closer is None else closer.end()


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
