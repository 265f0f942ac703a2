"""Commands on their way to the engine: made harmless, and those that are about the program answered here."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 198
"""Bytes of a command that the engine takes."""
_META = ("save", "restore", "restart", "quit", "q", "script", "unscript", "verify", "undo")
_VERBS = {letters: frozenset(verb[:letters] for verb in _META) for letters in (6, 9)}
_ENDS_OF_SENTENCES = re.compile(r"[.,;]|\bthen\b", re.IGNORECASE)


def clean(text: str) -> str:
    """`text` as one line that the engine takes as a whole.

    Control characters become blanks: what follows a line feed would stay in the engine and run as the next
    command, of whatever episode. So do backslashes: they begin commands to the interpreter itself, which asks
    again and again after one that it does not know. Cut at `LONGEST` bytes of UTF-8, between characters.
    """
    if len(text) <= LONGEST and text.isascii() and text.isprintable() and "\\" not in text:
        return text.strip()  # nearly all are
    line = "".join(" " if c == "\\" or unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text).strip()
    return line.encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore").strip()


def is_meta(command: str, version: int) -> bool:
    """Whether a part of a (cleaned) command is about the program: saving, restarting, transcripts, debugging.

    These would write files that other branches read, or end the game behind the adapter's back.
    """
    letters = 6 if version == 3 else 9  # that tell words apart
    verbs = _VERBS[letters]
    for part in _ENDS_OF_SENTENCES.split(command.lower()):
        words = part.split()
        if words and (words[0][0] in "#$" or (words[0][:letters] in verbs and words[1:] in ([], ["game"]))):
            return True
    return False
