"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.options import EnvironmentOptions
from llenvs.core.simulator import SimulatorOptions


class GameOptions(SimulatorOptions):
    """Options of every game."""

    size: int = Field(default=500, ge=1, le=1 << 31, description="Number of tasks.")
    seed: int = Field(
        default=42, ge=0, lt=1 << 31, description="Task i is the board of the upstream's seed `seed + i`."
    )
    max_steps: int | None = Field(
        default=None, ge=2, description="Actions of an episode; none for the game's own limit alone."
    )
    prompt: Literal["event", "suffix", "full"] = Field(
        default="event",
        description="What is observed: what the upstream says of the last move; this and the board; or all that was "
        "said since the rules, and the board.",
    )
    invalid_action: Literal["terminate", "continue"] = Field(
        default="terminate",
        description="Whether an action that the game cannot read ends the episode (as in the upstream), or uses a turn.",
    )


class WordGameOptions(GameOptions):
    """Options of the games that need the NLTK corpus `words`."""

    nltk_data: str | None = Field(
        default=None, description="Folder of NLTK's data; without it NLTK's own places, NLTK_DATA among them."
    )
