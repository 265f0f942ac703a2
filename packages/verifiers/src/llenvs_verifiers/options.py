"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.simulator import SimulatorOptions


class VerifiersOptions(SimulatorOptions):
    """Options of every environment module."""

    args: dict[str, Any] = Field(
        default_factory=dict, description="Arguments of the module's load_environment, by name."
    )
    split: Literal["eval", "train"] = Field(
        default="eval", description="Which tasks; a module without tasks for evaluation gives those for training."
    )
    size: int | None = Field(default=None, ge=1, description="The first so many tasks; none for all.")
    seed: int | None = Field(
        default=None,
        description="Shuffles the tasks, as the upstream does with this seed; none keeps their order.",
    )
    max_steps: int | None = Field(
        default=None, ge=1, description="Turns of an episode at most; none for the environment's own max_turns."
    )
    judge: Any = Field(
        default=None,
        description="The model behind judge rubrics: a backend, or a mapping such as {backend: openai, model: "
        "...} with the options of one; none for what the module asks.",
    )
    branching: Literal["auto", "copy", "replay"] = Field(
        default="auto",
        description="How older states are reached: by copies of the episode's state, or by replaying its actions. "
        "auto copies where the environment's class is the upstream's own.",
    )
    deterministic: bool = Field(
        default=True,
        description="Whether the same state and action always give the same result; false for random tools.",
    )
    max_live: int = Field(default=32, ge=1, description="Live episodes kept at most; a step beyond that waits.")
