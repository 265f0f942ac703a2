"""Options of the environments: where the rows come from, what their columns mean, how answers are judged."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from llenvs.core.options import SingleTurnOptions


class HuggingFaceOptions(SingleTurnOptions):
    """Options of every data set."""

    subset: str | list[str] | None = Field(
        None,
        description='Configuration on the hub ("main"), or several, one after the other. None: the usual one.',
    )
    split: str | None = Field(
        None, description='Split, or a slice of one: "test", "train[:100]". None: the usual one.'
    )
    revision: str | None = Field(None, description="Branch, tag or commit of the hub repository. None: main.")
    data_files: str | list[str] | dict[str, str | list[str]] | None = Field(
        None,
        description="Local files instead of the hub (.jsonl, .json, .csv, .tsv, .parquet, .arrow): a path or "
        "pattern, several, or {split: paths}.",
    )
    data_dir: str | None = Field(
        None,
        description="Local directory instead of the hub: a clone or snapshot of a repository, data files, or "
        "what save_to_disk wrote.",
    )
    data: Any = Field(None, description="The rows themselves: a list of dicts.")
    field: str | None = Field(None, description="Key of the rows in a JSON file that is one object.")
    cache_dir: str | None = Field(
        None, description="Folder with the hub's snapshots (datasets--owner--name). None: $HF_HUB_CACHE."
    )
    offline: bool | None = Field(
        None,
        description="True: never ask the network. None: as HF_HUB_OFFLINE says. When the network fails, what is "
        "here is used.",
    )
    size: int | None = Field(None, ge=1, description="Number of tasks, the first ones after shuffling. None: all.")
    seed: int | None = Field(
        None,
        ge=0,
        lt=2**64,
        description="Shuffles the rows as datasets.shuffle(seed=...) does, and the options of a question where "
        "those are shuffled. None: the data set's own order (and seed 0 for the options).",
    )
    question_column: str | None = Field(
        None, description="Column of the question (a.b: key b of column a). None: the preset's, or a usual name."
    )
    answer_column: str | None = Field(
        None, description="Column of the answer. None: the preset's, or a usual name."
    )
    choices_column: str | list[str] | None = Field(
        None, description="Column of the options of multiple choice, or one column for each. None: the preset's."
    )
    context_column: str | None = Field(None, description="Column of a text shown before the question.")
    image_column: str | list[str] | None = Field(
        None, description="Columns of images shown with the question (encoded bytes, or datasets' image columns)."
    )
    ground_truth_extractor: Any = Field(
        None,
        description="How the answer is found in the answer column: boxed, gsm8k, numeric, last_line, direct, any "
        "other extractor, or a function. None: the preset's, or the cell as it is.",
    )
    scoring: Any = Field(
        None,
        description="exact, text, f1, numeric, numeric_tolerance, choice, letter_or_text, set, any_of, closest, "
        "math, program; a mapping {name, options}; a function (answer, expected) -> number. None: the preset's.",
    )
    shuffle_choices: bool | None = Field(
        None,
        description="Whether the options of a question are shuffled, by a hash of seed and row. None: where the "
        "data set's own order tells the right one.",
    )
    prompt_template: str | None = Field(
        None,
        description="The prompt, with {question}, {choices}, {context} and {any_column}; {{name}} prints {name}. "
        "None: context, question and choices, one after the other.",
    )
    system_prompt: str | None = Field(None, description="A system message put before the prompt.")
    time_limit: float | None = Field(
        None, gt=0, description="Seconds for judging one answer (math: 5, program: 10 unless given)."
    )
    allow_code_execution: bool = Field(
        False, description="Whether the scorer program may run what the model wrote; see the README first."
    )
    answer_extractor: Any = Field(
        None,
        description="How the answer is found in the response: the name of an extractor, a mapping with its "
        "options, or a list of them as a fallback chain. None: the data set's own chain.",
    )
