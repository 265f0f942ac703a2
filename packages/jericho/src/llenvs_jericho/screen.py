"""What the engine prints, taken apart: status line, end of the game, the greatest score."""

from __future__ import annotations

import re
from dataclasses import dataclass

# version 3: the first line, with the values before the move
_TOP = re.compile(
    r"\A *>? *(?P<place>[^\n]*?) {3,}(?:Score: *-?\d+ +Moves: *\d+|Time: *\d+:\d+ *[AP]M) *\n", re.IGNORECASE
)
# later versions: after the text, behind many blanks, with the values after the move
_BOTTOM = re.compile(r"\n*>? {40,}(?P<line>[^\n]*)\Z")
_SCORE_MOVES = re.compile(r"(?P<place>.*?) *Score: *(?P<score>-?\d+) *(?:Moves|Turns): *(?P<moves>\d+)")
_SLASHED = re.compile(r"(?P<place>.*?) *(?P<score>-?\d+)/(?P<moves>\d+)\Z")

_WON = re.compile(r"\*{3,4} +You have won|\*{3} The End \*{3}", re.IGNORECASE)
_LOST = re.compile(r"\*{3,4} +(?:You have died|You lost|You are dead)", re.IGNORECASE)
_OVER = re.compile(
    r"RESTART[^.?]*RESTORE[^.?]*QUIT|restart the game[^.?]*restore[^.?]*(?:end|quit)", re.IGNORECASE
)
_GREATEST = re.compile(
    r"(?:total of|out of(?: a possible)?|of a possible) (?:maximum of )?(?P<max>\d+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Screen:
    """One reply. `text` is without the status line; the rest is what that says, None where it does not."""

    text: str
    place: str | None = None
    score: int | None = None
    moves: int | None = None


def read_screen(text: str, version: int) -> Screen:
    """Take the status line out of `text`, as the engine itself does for games that it knows."""
    if version == 3:
        top = _TOP.match(text)
        return Screen(text) if top is None else Screen(text[top.end() :], top["place"])
    bottom = _BOTTOM.search(text)
    if bottom is None:
        return Screen(text)
    said = _SCORE_MOVES.match(bottom["line"]) or _SLASHED.match(bottom["line"])
    rest = text[: bottom.start()]
    if said is None:
        return Screen(rest, bottom["line"].strip() or None)
    return Screen(rest, said["place"] or None, int(said["score"]), int(said["moves"]))


def ending(text: str) -> str | None:
    """ "won", "lost", "over" (the game asks whether to restart), or None when it goes on."""
    if "***" in text:  # most texts have none of these, and are looked at with each step
        if _WON.search(text):
            return "won"
        if _LOST.search(text):
            return "lost"
    return "over" if "restore" in text.lower() and _OVER.search(text) else None


def greatest_score(text: str) -> int | None:
    """The greatest score that a game names in its answer to the command ``score``."""
    found = _GREATEST.search(text)
    return int(found["max"]) if found else None
