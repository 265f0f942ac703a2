"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.simulator import SimulatorOptions

UserKind = Literal["backend", "litellm", "scripted", "instructions", "solo"]


class TauOptions(SimulatorOptions):
    """Options of every domain."""

    split: str | None = Field(
        default=None, description="Split of the tasks; none for the upstream's default (train and test together)."
    )
    tasks: list[str] | None = Field(default=None, min_length=1, description="Ids of the tasks, in this order.")
    size: int | None = Field(default=None, ge=1, description="The first so many tasks.")
    seed: int | None = Field(
        default=None, description="Shuffles the tasks (before size); none for their own order."
    )
    exclude_noop_tasks: bool = Field(
        default=False, description="Leave out the tasks that are solved by doing nothing at all."
    )
    user: UserKind | None = Field(
        default=None,
        description="Who talks to the agent: a model through one of our backends, a model through the upstream "
        "and litellm, a script, the task's instructions all at once (not standard), or nobody (solo). By default "
        "what the other options say.",
    )
    user_backend: Any = Field(
        default=None,
        description="Backend of the user: one that was made, or {backend: name, model: ..., its other options}.",
    )
    user_sampling: Any = Field(
        default=None, description="Sampling parameters of the user; by default temperature 0, as in the upstream."
    )
    user_model: str | None = Field(default=None, description="Model of the user, as litellm names it.")
    user_model_args: dict[str, Any] = Field(
        default_factory=lambda: {"temperature": 0.0}, description="Arguments for litellm."
    )
    user_script: Any = Field(
        default=None,
        description="Replies of the user in turn: a list for all tasks, a mapping from task id to list, or a "
        "function of the conversation. A reply is a text or {tool_calls: [{name: ..., arguments: {...}}]}; after "
        "the last one the user stops.",
    )
    judge_backend: Any = Field(
        default=None,
        description="Backend that judges the assertions in natural language, given as user_backend is.",
    )
    judge_sampling: Any = Field(
        default=None, description="Sampling parameters of the judge; by default temperature 0, as in the upstream."
    )
    nl_assertions: Literal["judge", "skip"] = Field(
        default="judge",
        description="Where such assertions count: they need a judge, or are left out (not standard).",
    )
    max_steps: int | None = Field(default=100, ge=1, description="Actions of an episode; none for no limit.")
    max_messages: int = Field(
        default=200, ge=1, description="The upstream's own limit: messages of agent, user and tools."
    )
    max_errors: int = Field(default=10, ge=1, description="The upstream's own limit: tool calls that failed.")
    domain_options: dict[str, Any] = Field(
        default_factory=dict, description="Keywords of the upstream's constructor (retrieval_variant of banking)."
    )
    verify_isolation: bool = Field(
        default=False, description="Hash whole databases at every step to prove that no branch changed another."
    )
    max_live: int = Field(
        default=64,
        ge=1,
        description="Simulators at most; a step beyond that waits for one. Each step of a user who is a model "
        "holds one until the model has answered.",
    )
