"""Commands that mean an admissible one but are not written as the game wants them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PUT = re.compile(r"(?:put|move|place) (?P<what>.+?) (?:in/on|into|onto|in|on|to) (?P<where>.+)")


def reworded(command: str, admissible: Iterable[str]) -> str | None:
    """The one of `admissible` that `command` means; None when there is none, or more than one.

    Capitals, repeated blanks and a full stop at the end do not matter, nor whether an object is put in or on a
    receptacle or moved to it: games made by ALFWorld before 0.4 want the one, later games the other.
    """
    wanted = _plain(command)
    found = {each for each in admissible if _plain(each) == wanted}
    return found.pop() if len(found) == 1 else None


def _plain(command: str) -> str:
    text = " ".join(command.casefold().split()).removesuffix(".").rstrip()
    put = _PUT.fullmatch(text)
    return f"move {put['what']} to {put['where']}" if put else text
