"""Options of the environments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from llenvs.core.simulator import SimulatorOptions


class JerichoOptions(SimulatorOptions):
    """Options of every game."""

    games_dir: str | None = Field(
        default=None, description="Folder of the story files; without it that of LLENVS_JERICHO_GAMES."
    )
    max_steps: int | None = Field(default=100, ge=2, description="Actions of an episode; none for no limit.")
    reward: Literal["score_gained", "score_share"] = Field(
        default="score_gained",
        description="Which signal is the reward: points gained with each step, or the final share of all points.",
    )
    max_score: int | None = Field(
        default=None, ge=1, description="All points of the game, where neither the engine nor the game names them."
    )
    status_line: bool = Field(default=False, description="Leave the game's status line in the observation.")
    meta_commands: Literal["block", "allow"] = Field(
        default="block",
        description="SAVE, RESTORE, RESTART, QUIT, SCRIPT and the like: answered here, or given to the game.",
    )
    inventory: bool = Field(default=False, description="Ask the game for the inventory after each step (info).")
    valid_actions: Literal["none", "info", "prompt"] = Field(
        default="none",
        description="Valid actions after each step, for games that the engine knows: in the info, or also in the "
        "observation. Needs spaCy with en_core_web_sm and about 0.1 s a step.",
    )
    time_limit: float = Field(
        default=10.0, gt=0, le=3600, description="Seconds that the engine may take for a step."
    )


class AllGamesOptions(JerichoOptions):
    """Options of `all`."""

    games: list[str] | None = Field(
        default=None, description="Names or paths of the games, one task each; none for all story files at hand."
    )
