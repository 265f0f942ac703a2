"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.options import EnvironmentOptions
from llenvs_craftax.variants import ObservationMode


class CraftaxOptions(EnvironmentOptions):
    """Options of both games."""

    observation_mode: ObservationMode | None = Field(
        default=None,
        description="How the game is shown: text (in words), symbolic (JSON of what is in view) or pixels (a PNG "
        "image); none for what the environment's name says.",
    )
    size: int = Field(default=100, ge=1, description="Number of tasks; each is a world.")
    seed: int = Field(
        default=0, ge=0, description="Task i is the world of seed + i, unless reset is given a seed, which wins."
    )
    max_steps: int | None = Field(
        default=10_000,
        ge=2,
        description="Actions of an episode, refused ones included; none for no limit but the game's own.",
    )
    answer_extractor: Any = Field(
        default="last_line",
        description="How the action is found in the response: the name of an extractor, a mapping with its "
        "options, or a list of them; none for the whole response.",
    )
    invalid_action_text: str | None = Field(
        default="[invalid action]",
        description="What stands for a response that is no action, as the resolved action and in the observation; "
        "none keeps the response itself as the resolved action.",
    )
    max_actions: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Actions that one response may hold, as in 'left, left, do' or 'left x3'.",
    )
    action_repeat: int = Field(default=1, ge=1, le=1000, description="How often each action is taken in a row.")
    instructions: bool = Field(
        default=True, description="The rules and the names of all actions as the task text of each observation."
    )
    show_map: bool = Field(default=False, description="(text) Add a map of what is in view, one letter a tile.")
    show_position: bool = Field(default=False, description="(text, symbolic) Add the row and column on the map.")
    show_mob_health: bool = Field(default=False, description="(text, symbolic) Add the health of what is in view.")
    show_achievements: bool = Field(default=False, description="Add the achievements unlocked so far.")
    tile_size: int = Field(default=16, ge=8, le=64, description="(pixels) Width and height of a tile in pixels.")
    goal: str | None = Field(
        default=None,
        description="Achievement whose unlocking is success, such as collect_diamond; none for all of them.",
    )
    key_mode: Literal["timestep", "state_rng"] = Field(
        default="timestep",
        description="Where the chance of a step comes from: the seed and the timestep, or the random state that "
        "the upstream keeps in its state. They are different games of chance, each repeatable.",
    )
    stochastic_branching: bool = Field(
        default=False,
        description="Trajectories of one fork meet different chance; otherwise the same actions meet the same.",
    )
    day_length: int = Field(default=300, ge=1, le=10**6, description="Steps of a day and night.")
    max_live: int = Field(
        default=64,
        ge=1,
        description="States kept ready for the next step; others are unpacked first, which takes longer.",
    )


class ClassicOptions(CraftaxOptions):
    """Options of Craftax Classic."""

    max_timesteps: int = Field(
        default=10_000, ge=1, le=2**31 - 1, description="Steps of the game, after which the upstream ends it."
    )
    always_diamond: bool = Field(default=True, description="There is a diamond in every world.")


class FullOptions(CraftaxOptions):
    """Options of Craftax."""

    max_steps: int | None = Field(
        default=100_000,
        ge=2,
        description="Actions of an episode, refused ones included; none for no limit but the game's own.",
    )
    max_timesteps: int = Field(
        default=100_000, ge=1, le=2**31 - 1, description="Steps of the game, after which the upstream ends it."
    )
    always_diamond: bool = Field(default=False, description="The first floor of every world has a diamond.")
    god_mode: bool = Field(
        default=False, description="No damage, and 99 of everything: for demonstrations, never for scores."
    )
