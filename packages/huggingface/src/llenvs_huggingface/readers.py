"""Which reader understands the rows: the preset's, changed by the options, or one by columns named or guessed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs_huggingface.columns import (
    ANSWER_NAMES,
    QUESTION_NAMES,
    ColumnReader,
    cell,
    check_column,
    ground_truth_function,
    guessed_column,
)
from llenvs_huggingface.item import Item, Reader, Row, text_of
from llenvs_huggingface.options import HuggingFaceOptions
from llenvs_huggingface.presets import Preset


def reader_for(preset: Preset | None, options: HuggingFaceOptions, columns: Sequence[str]) -> Reader:
    """The preset's reader, with what the options change; without a preset the columns named or guessed.

    Raises:
        InvalidOption: a column is not there, with the nearest names; or one must be given.
    """
    ground_truth = ground_truth_function(options.ground_truth_extractor)
    given = {
        "question": options.question_column,
        "answer": options.answer_column,
        "context": options.context_column,
    }
    changed: dict[str, Any] = {
        key: check_column(f"{key}_column", column, columns) for key, column in given.items() if column is not None
    }
    if options.choices_column is not None:
        named = options.choices_column
        for column in [named] if isinstance(named, str) else named:
            check_column("choices_column", column, columns)
        changed["choices"] = named if isinstance(named, str) else tuple(named)
    if options.ground_truth_extractor is not None:
        changed["ground_truth"] = ground_truth
    if preset is None:
        question = changed.pop("question", None) or guessed_column("question_column", QUESTION_NAMES, columns)
        answer = changed.pop("answer", None) or guessed_column("answer_column", ANSWER_NAMES, columns)
        return ColumnReader(question, answer, **changed)
    if isinstance(preset.reader, ColumnReader):
        reader = dataclasses.replace(preset.reader, **changed)
        needed = [("question_column", reader.question), ("answer_column", reader.answer)]
        for choices in [reader.choices] if isinstance(reader.choices, str) else reader.choices or ():
            needed.append(("choices_column", choices))
        for option, column in needed:
            check_column(option, column, columns)
        return reader
    if set(changed) <= {"context"}:
        missing = [column for column in preset.columns if column.split(".")[0] not in columns]
        if missing:
            check_column("question_column", missing[0], columns)
        return _with_context(preset.reader, changed["context"]) if changed else preset.reader
    for key in ("question", "answer"):
        if key not in changed:
            problem = f"must be given too, since {preset.name} has a reader of its own, which the other replaces"
            raise InvalidOption(f"{key}_column", None, problem)
    return ColumnReader(**changed)


def _with_context(reader: Reader, column: str) -> Reader:
    def read(row: Row) -> Item:
        return dataclasses.replace(reader(row), context=text_of(cell(row, column)))

    return read
