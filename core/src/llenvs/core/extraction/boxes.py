r"""Where ``\boxed`` and ``\fbox`` arguments begin and end in a LaTeX text."""

from __future__ import annotations

import re
from typing import NamedTuple


class Box(NamedTuple):
    """One box: where its command begins, where it ends, and its argument."""

    start: int
    end: int
    content: str


# A box with braces, a box with a bare argument (`\boxed 5`), escaped braces and line breaks (skipped), brace runs.
# Two backslashes before `boxed` are taken as an escaped one: models copy LaTeX out of JSON.
# The possessive runs and the stop at every backslash keep it linear.
_TOKEN = re.compile(
    r"(?P<box>\\(?:boxed|fbox)\s{0,8}\{)"
    r"|\\(?:boxed|fbox)(?![A-Za-z])[ \t]{0,8}(?P<bare>\\?[^\s{}$\\]++)(?!\{)"
    r"|\\[{}]|\\\\(?!boxed|fbox)"
    r"|(?P<open>\{+)|(?P<close>\}+)"
)
_FIRST = re.compile(r"\\(?:boxed|fbox)")


def last_box(text: str) -> Box | None:
    r"""The complete box that begins last in `text`, so the inner of ``\boxed{\boxed{5}}``; None without one."""
    first = _FIRST.search(text)
    if first is None:
        return None
    best: Box | None = None
    depth = 0
    unclosed: list[tuple[int, int, int]] = []  # start of the command, start of the argument, depth inside
    for token in _TOKEN.finditer(text, first.start()):
        kind = token.lastgroup
        if kind == "box":
            depth += 1
            unclosed.append((token.start(), token.end(), depth))
        elif kind == "open":
            depth += token.end() - token.start()
        elif kind == "close":
            depth_after = max(0, depth - (token.end() - token.start()))
            while unclosed and unclosed[-1][2] > depth_after:
                start, argument, inside = unclosed.pop()
                if best is None or start > best.start:
                    end = token.start() + depth - inside
                    best = Box(start, end + 1, text[argument:end])
            depth = depth_after
        elif kind == "bare":
            best = Box(token.start(), token.end(), token["bare"].rstrip(".,;:"))
    return best


def whole_box(text: str) -> str | None:
    """The argument of the box that `text` is from end to end; None where it is more or less than one box."""
    first = _FIRST.match(text)
    if first is None:
        return None
    box = last_box(text)
    return box.content if box is not None and box.start == 0 and box.end == len(text) else None
