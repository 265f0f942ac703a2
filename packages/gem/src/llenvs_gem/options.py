"""Options of the environments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from llenvs.core.options import EnvironmentOptions, SingleTurnOptions
from llenvs.core.simulator import SimulatorOptions


class ToolOptions(EnvironmentOptions):
    """Options of the tools."""

    tool_types: tuple[Literal["python", "search", "mcp"], ...] = Field(
        default=(),
        description="Tools that the model may call; with any, its answer (or move) is given by the tool "
        "submit_answer, or as text without a call.",
    )
    max_tool_uses: int | None = Field(
        default=10,
        ge=1,
        description="(tools) Calls in an episode, submit_answer aside; none for no limit.",
    )
    tool_reward: float = Field(
        default=0.0, allow_inf_nan=False, description="(tools) Reward for each call that was run."
    )
    tool_success_reward: float = Field(
        default=0.0, allow_inf_nan=False, description="(tools) Added to it for a call that did not fail."
    )
    python_time_limit: float = Field(
        default=10.0, gt=0, le=3600, description="(tool python) Seconds that a program may run."
    )
    python_memory_limit: int = Field(
        default=2 << 30, ge=64 << 20, description="(tool python) Bytes of address space of a program."
    )
    search_url: str | None = Field(
        default=None,
        description="(tool search) Address of a retrieval server of the upstream's kind; without it that of "
        "SEARCH_URL.",
    )
    search_topk: int = Field(default=3, ge=1, description="(tool search) Documents per query.")
    search_time_limit: float = Field(default=5.0, gt=0, le=3600, description="(tool search) Seconds for a query.")
    mcp: Any = Field(
        default=None,
        description='(tool mcp) A server of the Model Context Protocol: its URL, {"url", "headers"}, or '
        '{"command", "args", "env", "cwd"}; also as the one entry of {"mcpServers": {...}}.',
    )


class GameOptions(SimulatorOptions, ToolOptions):
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
        description="What is observed: what the upstream says of the last move; this and the board; or all that "
        "was said since the rules, and the board.",
    )
    invalid_action: Literal["terminate", "continue"] = Field(
        default="terminate",
        description="Whether an action that the game cannot read ends the episode (as in the upstream), or "
        "uses a turn.",
    )


class WordGameOptions(GameOptions):
    """Options of the games that need the NLTK corpus `words`."""

    nltk_data: str | None = Field(
        default=None, description="Folder of NLTK's data; without it NLTK's own places, NLTK_DATA among them."
    )


class QuestionOptions(SingleTurnOptions, ToolOptions):
    """Options of every environment of questions."""

    answer_extractor: Any = Field(
        default="native",
        description="How the answer is found in a response: as the upstream does it, the name of another "
        "extractor, a mapping with its options, or a list of them as a fallback chain.",
    )
    time_limit: float = Field(
        default=10.0, gt=0, le=3600, description="Seconds for judging an answer; for code, for each test."
    )
    max_steps: int | None = Field(
        default=None, ge=1, description="(tools) Actions of an episode; none for one more than max_tool_uses."
    )


class ReasoningOptions(QuestionOptions):
    """Options of the data sets of reasoning_gym."""

    size: int = Field(default=500, ge=1, le=1 << 31, description="Number of tasks.")
    seed: int = Field(default=42, ge=0, lt=1 << 31, description="Seed of the data set.")


class DatasetOptions(QuestionOptions):
    """Options of the data sets of the hub."""

    dataset: Any = Field(
        default=None,
        description="The rows, instead of those of the hub: a list of mappings, the path of a .jsonl, .json, .csv "
        "or .parquet file or of a folder that Dataset.save_to_disk wrote, or a datasets.Dataset or DatasetDict.",
    )
    split: str | None = Field(default=None, description="Split of the data set; none for the upstream's choice.")
    size: int | None = Field(default=None, ge=1, description="Number of tasks at most; none for all rows.")
    shuffle: int | None = Field(
        default=None,
        ge=0,
        description="Seed that shuffles the rows, into the upstream's order for this seed (its own is 0); none "
        "for the rows as they are.",
    )
    question_key: str | None = Field(default=None, description="Column of the question; none for the upstream's.")
    answer_key: str | None = Field(
        default=None, description="Column of the right answer, or of the tests; none for the upstream's."
    )


class ImageDatasetOptions(DatasetOptions):
    """Options of the data sets with images."""

    image_key: str | None = Field(default=None, description="Column of the images; none for the upstream's.")


class CodeOptions(DatasetOptions):
    """Options of the programming problems."""

    memory_limit: int = Field(default=2 << 30, ge=64 << 20, description="Bytes of address space for each test.")
    max_tests: int = Field(
        default=12, ge=1, description="Tests that a program must pass: of more, those with the longest inputs."
    )
    max_workers: int = Field(default=5, ge=1, le=64, description="Tests that run at once.")
