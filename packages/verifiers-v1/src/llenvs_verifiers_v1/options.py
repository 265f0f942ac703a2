"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.simulator import SimulatorOptions


class VerifiersV1Options(SimulatorOptions):
    """Options of every taskset."""

    taskset_params: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the taskset's config (upstream: --env.taskset.*)."
    )
    task_params: dict[str, Any] = Field(
        default_factory=dict, description="Fields of its tasks' config, judges included (--env.taskset.task.*)."
    )
    env_params: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the environment's config, its seats included (--env.*)."
    )
    size: int | None = Field(
        default=None, ge=1, description="The first so many tasks; none for all. An infinite taskset needs it."
    )
    seed: int | None = Field(
        default=None,
        description="Shuffles the tasks, as the upstream does with this seed; none keeps their order.",
    )
    max_steps: int | None = Field(
        default=None,
        ge=1,
        description="Turns of the policy at most (its seat's max_turns); none for no limit of ours.",
    )
    seat: str | None = Field(default=None, description="The seat that the policy plays; none for the first.")
    env_llm: Any = Field(
        default=None,
        description="The model of the other seats: a backend, a mapping such as {backend: openai, model: ...}, "
        "or a mapping from seats to these.",
    )
    judge: Any = Field(
        default=None,
        description="The model behind the upstream's judges: a backend, or a mapping such as {backend: openai, "
        "model: ...}; none for what their configuration names.",
    )
    harness: Literal["auto", "relay"] = Field(
        default="auto",
        description="relay also plays tasksets that bring a harness of their own with a plain chat loop; auto "
        "refuses them.",
    )
    mode: Literal["auto", "episode"] = Field(
        default="auto",
        description="auto scores tasks that need nothing but a reply without the upstream's rollout; episode "
        "always runs it.",
    )
    success_signal: str = Field(
        default="total_reward", description="The signal that declares success; the upstream declares none."
    )
    success_threshold: float = Field(default=0.5, description="What that signal must reach.")
    deterministic: bool = Field(
        default=True,
        description="Whether the same state and action always give the same result; false for random tools.",
    )
    time_limit: float = Field(
        default=120.0, gt=0, le=86400, description="Seconds that the environment may take for a step or a start."
    )
    max_live: int = Field(default=8, ge=1, description="Live episodes kept at most; a step beyond that waits.")
