"""The two games, and the environments by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VariantName = Literal["classic", "full"]
ObservationMode = Literal["text", "symbolic", "pixels"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An environment by name: which game, and how it is shown unless the options say otherwise."""

    variant: VariantName
    mode: ObservationMode
    description: str


_FULL = "Craftax: survive and craft through nine floors, 67 achievements"
_CLASSIC = "Craftax Classic, the game Crafter: survive and craft, 22 achievements"

ENTRIES: dict[str, Entry] = {
    "craftax": Entry("full", "text", f"{_FULL}, in words"),
    "craftax-symbolic": Entry("full", "symbolic", f"{_FULL}, as JSON"),
    "craftax-pixels": Entry("full", "pixels", f"{_FULL}, as images"),
    "craftax-classic": Entry("classic", "symbolic", f"{_CLASSIC}, as JSON"),
    "craftax-classic-text": Entry("classic", "text", f"{_CLASSIC}, in words"),
    "craftax-classic-symbolic": Entry("classic", "symbolic", f"{_CLASSIC}, as JSON"),
    "craftax-classic-pixels": Entry("classic", "pixels", f"{_CLASSIC}, as images"),
}
"""In the order in which they are listed; the first are named as papers name them."""
