"""Commands on their way to the engine: made harmless, and those that are about the program answered here."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 198
"""Bytes of a command that the engine takes."""
_META = ("save", "restore", "restart", "quit", "q", "script", "unscript", "verify", "undo")
_LETTERS = {3: 6}  # letters that tell words apart; 9 in later versions
_ENDS_OF_SENTENCES = re.compile(r"[.,;]|\bthen\b", re.IGNORECASE)


def clean(text: str) -> str:
    """`text` as one line that the engine takes as a whole.

    Control characters become blanks: what follows a line feed would stay in the engine and run as the next
    command, of whatever episode. So do backslashes: they begin commands to the interpreter itself, which asks
    again and again after one that it does not know. Cut at `LONGEST` bytes of UTF-8, between characters.
    """
    line = "".join(" " if c == "\\" or unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text).strip()
    return line.encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore").strip()


def is_meta(command: str, version: int) -> bool:
    """Whether a part of a (cleaned) command is about the program: saving, restarting, transcripts, debugging.

    These would write files that other branches read, or end the game behind the adapter's back.
    """
    letters = _LETTERS.get(version, 9)
    verbs = {verb[:letters] for verb in _META}
    for part in _ENDS_OF_SENTENCES.split(command.lower()):
        words = part.split()
        if words and (words[0][0] in "#$" or (words[0][:letters] in verbs and words[1:] in ([], ["game"]))):
            return True
    return False
