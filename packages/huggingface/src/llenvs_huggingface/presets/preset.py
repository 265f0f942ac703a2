"""What is known of a well-known data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llenvs_huggingface.item import Reader

NUMERIC_ANSWER: tuple[Any, ...] = ("tag_based", "boxed", "gsm8k", "pattern", "numeric")
"""Where a number is looked for in a response: the first place that there is."""
MATH_ANSWER: tuple[Any, ...] = ("tag_based", "boxed", "gsm8k", "pattern", "last_line")
TEXT_ANSWER: tuple[Any, ...] = ("tag_based", "boxed", "pattern", "last_line")
CHOICE_ANSWER: tuple[Any, ...] = ("tag_based", "boxed", "multiple_choice", "last_line")
CODE_ANSWER: tuple[Any, ...] = ("tag_based", "code_block", "raw")


@dataclass(frozen=True)
class Preset:
    """A data set whose columns are known.

    Attributes:
        name: of the environment.
        repository: on the hub, ``owner/name``.
        description: one line.
        category: for the list.
        reader: understands a row.
        columns: what a row must have (a dot leads into nested columns).
        scoring: what `make_scorer` takes.
        extractor: what `make_extractor` takes.
        split: the one used without the option.
        subset: the one used without the option; None where there is one alone.
        subsets: all of them, where they are one benchmark together: without the option all are used, in this
        order.
        shuffle_choices: whether the row's own order tells which option is right, so that they must be shuffled.
        size: rows of the default subset and split, as the data set's card says; None where it is not known.
        gated: the hub asks for a login and for the owner's terms.
        note: what a user should know; "" for nothing.
    """

    name: str
    repository: str
    description: str
    category: str
    reader: Reader
    columns: tuple[str, ...]
    scoring: Any = "exact"
    extractor: Any = TEXT_ANSWER
    split: str = "test"
    subset: str | None = None
    subsets: tuple[str, ...] = ()
    shuffle_choices: bool = False
    size: int | None = None
    gated: bool = False
    note: str = ""
