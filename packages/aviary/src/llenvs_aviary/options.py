"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.simulator import SimulatorOptions

Branching = Literal["auto", "copy", "replay"]


class AviaryOptions(SimulatorOptions):
    """Options of every environment."""

    max_steps: int | None = Field(
        default=20, ge=2, description="Actions of an episode; none for no limit (the upstream has none)."
    )
    max_live: int = Field(
        default=64, ge=1, description="Environment objects alive at most; a step beyond that waits for one."
    )
    tool_errors: Literal["result", "raise"] = Field(
        default="result",
        description="An exception in a tool, or arguments that it does not have: an error result that the model "
        "reads, or (as in most upstream environments) a failure of the episode.",
    )
    time_limit: float | None = Field(
        default=300.0, gt=0, description="Seconds that a reset or a step may take; none for no limit."
    )


class TaskSetOptions(AviaryOptions):
    """Options where there are many tasks."""

    size: int | None = Field(default=None, ge=1, description="Number of tasks: the first so many; none for all.")
    seed: int | None = Field(
        default=None, description="Shuffles the tasks before `size` is taken; none: as filed."
    )


class DummyOptions(TaskSetOptions):
    """Options of `dummy`."""

    tasks: list[str] | None = Field(
        default=None, description="What the stories are to be about, one task each; none for one task without."
    )
    end_immediately: bool = Field(default=True, description="The story ends the episode.")


class QuestionOptions(TaskSetOptions):
    """Options where an episode ends with `submit_answer`."""

    data_dir: str | None = Field(
        default=None, description="Folder with the rows as files, instead of the hub of Hugging Face."
    )
    correct_reward: float = Field(default=1.0, description="Reward of a correct answer.")
    incorrect_reward: float = Field(default=0.0, description="Reward of a wrong answer.")
    answer_extractor: Any = Field(
        default=None,
        description="For models that cannot call tools: an extractor (tag_based, boxed, ...) that finds the "
        "answer in a text, which is then submitted.",
    )


class GSM8KOptions(QuestionOptions):
    """Options of `gsm8k`."""

    split: Literal["train_full", "train", "val", "test"] = Field(
        default="test",
        description="train_full is the training set of the hub; train and val are its rows whose index is not, or "
        "is, divisible by 5.",
    )
    tool_failure_reward: float = Field(
        default=-1.0, description="Reward of an expression that fails, or an answer that is no number."
    )
    tool_success_reward: float = Field(default=0.0, description="Reward of each use of the calculator.")
    rel_tol: float = Field(default=1e-4, gt=0, description="Relative tolerance of an answer.")
    done_on_failure: bool = Field(default=True, description="An expression that fails ends the episode.")


class HotPotQAOptions(QuestionOptions):
    """Options of `hotpotqa`."""

    split: Literal["train", "validation", "test", "dev", "eval", "val"] = Field(
        default="validation", description="Of the hub's data set; dev, eval and val are validation."
    )
    difficulty_level: list[Literal["easy", "medium", "hard"]] | None = Field(
        default=None, description="Questions of these levels alone."
    )
    tool_failure_reward: float = Field(default=0.0, description="Reward of an action that calls nothing.")
    evaluation_mode: Literal["contains", "exact"] = Field(
        default="contains",
        description="Whether the right answer must be in the given one, or be it (both normalised).",
    )
    pages: str | None = Field(
        default=None,
        description="JSON file with pages: search words (blanks as +) to HTML; without it wiki_cache.json in "
        "data_dir, if there is one.",
    )
    online: bool | None = Field(
        default=None, description="Ask Wikipedia for other pages; without it, only where no pages are given."
    )
    proxy: str | None = Field(
        default=None, description="URL of a proxy for that; else AVIARY_ENV_HOTPOTQA_PROXY, as upstream."
    )


class NotebookOptions(AviaryOptions):
    """Options of `notebook`."""

    work_dir: str | None = Field(
        default=None, description="Folder whose copy the episode begins in; none for an empty one."
    )
    task: str | None = Field(default=None, description="What to do; the upstream itself gives no task.")
    language: Literal["python", "r"] = Field(default="python", description="Of the notebook.")
    use_docker: bool = Field(
        default=True,
        description="Run cells in a container (image aviary-notebook-env, which you build). Without, the model's "
        "code runs on this machine, with your rights.",
    )
    run_notebook_on_edit: bool = Field(
        default=False, description="Run all cells after each edit, not the edited one alone (always with Docker)."
    )
    cell_execution_timeout: int = Field(default=600, ge=1, description="Seconds that a cell may take.")
    max_live: int = Field(default=4, ge=1, description="Kernels at most; a step beyond that waits for one.")


class OpenOptions(TaskSetOptions):
    """Options of environments that the adapter knows nothing about."""

    success_reward: float | None = Field(
        default=None, description="A step with at least this reward makes the episode a success; none: undeclared."
    )
    deterministic: bool = Field(
        default=True, description="Whether the same actions always lead to the same observations and rewards."
    )


class CustomOptions(OpenOptions):
    """Options of `custom`."""

    env: Any = Field(
        default=None,
        description="An aviary environment: class, function that makes one, functional environment, object, list "
        'of objects; or where it is, as "module:name" or "path/to/file.py:name".',
    )
    env_options: dict[str, Any] | list[dict[str, Any]] | None = Field(
        default=None, description="Keyword arguments for `env`; a list of them for as many tasks."
    )
    dataset: Any = Field(
        default=None,
        description="An aviary task data set: object, class or function; or where it is; or a name that the "
        "upstream has registered.",
    )
    dataset_options: dict[str, Any] | None = Field(default=None, description="Keyword arguments for `dataset`.")
    branching: Branching = Field(
        default="auto",
        description="How an older state is reached: by a copy of the environment object, by replaying the "
        "actions, or by a copy where one shares nothing with the original. Use replay when the environment "
        "changes files or other things outside itself.",
    )
    seed_random: bool = Field(
        default=True,
        description="Seed Python's (and numpy's) global random numbers before each step, from the episode's seed. "
        "Such steps run one at a time in a process.",
    )


class RemoteOptions(OpenOptions):
    """Options of `remote`."""

    server_url: str = Field(description="Of a running aviary TaskDatasetServer, such as http://127.0.0.1:8041.")
    api_key_variable: str = Field(
        default="AVIARY_API_KEY", description="Environment variable with the server's key, if it has one."
    )


class PaperOptions(OpenOptions):
    """Options of the environments over papers."""

    deterministic: bool = Field(default=False, description="Whether its language models always answer the same.")

    dataset_options: dict[str, Any] | None = Field(
        default=None,
        description="Keyword arguments of the upstream's data set (such as split, settings; for lfrqa: data).",
    )
