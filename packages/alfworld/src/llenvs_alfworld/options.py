"""Options of the environments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from llenvs.core.simulator import SimulatorOptions
from llenvs_alfworld.catalogue import TASK_TYPES


class AlfworldOptions(SimulatorOptions):
    """Options of every game."""

    max_steps: int | None = Field(default=50, ge=1, description="Actions of an episode; none for no limit.")
    reward: Literal["task_completion", "progress"] = Field(
        default="task_completion",
        description="Which signal is the reward: the task done or not at the end, or what each step adds to the "
        "share of the goal's conditions that hold.",
    )
    include_admissible_commands: bool = Field(
        default=False, description="List the admissible commands in the observation; the info always has them."
    )
    commands: Literal["exact", "lenient"] = Field(
        default="exact",
        description="Commands as the game wants them, to the letter; or also with other capitals, blanks or a "
        "full stop, and with put and move taken for each other.",
    )
    expert_plan: bool = Field(
        default=False,
        description="Have the planner's commands to the goal in each hidden state. Takes up to seconds a step.",
    )
    state: Literal["values", "commands"] = Field(
        default="values",
        description="What a state keeps: the planner's values, from which it goes on at once, or the commands "
        "taken, which are replayed.",
    )
    max_games: int = Field(default=16, ge=1, description="Games that an engine process keeps loaded at most.")
    max_game_bytes: int = Field(
        default=256 << 20, ge=0, description="Memory that they take at most, about, all together; one is kept."
    )
    time_limit: float = Field(
        default=60.0, gt=0, le=3600, description="Seconds that the engine may take for a step or a plan."
    )


class SplitOptions(AlfworldOptions):
    """Options of a split."""

    data_dir: str | None = Field(
        default=None,
        description="Folder of the games (with json_2.1.1, or with the splits themselves); without it that of "
        "ALFWORLD_DATA, else where alfworld-download puts them.",
    )
    task_types: list[int] | None = Field(
        default=None,
        min_length=1,
        description="Which types of task, by number: "
        + ", ".join(f"{number} {name}" for number, name in TASK_TYPES.items())
        + "; none for all.",
    )

    @field_validator("task_types")
    @classmethod
    def _known_types(cls, types: list[int] | None) -> list[int] | None:
        unknown = [number for number in types or () if number not in TASK_TYPES]
        if unknown:
            names = ", ".join(f"{number} ({name})" for number, name in TASK_TYPES.items())
            raise ValueError(f"{unknown[0]} is no type of task; valid: {names}")
        return types
