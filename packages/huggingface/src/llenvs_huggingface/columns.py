"""Columns by name: the reader of any data set whose layout the user, or its column names, tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llenvs.core.errors import InvalidOption, listed, nearest
from llenvs.core.extraction import make_extractor
from llenvs_huggingface.choices import Options, read_options, right_option
from llenvs_huggingface.item import Item, Row, text_of

QUESTION_NAMES = ("question", "problem", "prompt", "query", "input", "instruction")
"""Names of question columns, the likeliest first; case does not count."""
ANSWER_NAMES = ("answer", "final_answer", "expected_answer", "target", "output", "label", "solution", "answers")
"""Names of answer columns, the likeliest first; case does not count."""


@dataclass(frozen=True)
class ColumnReader:
    """Reads rows by column names; a dot leads into a nested column (``answer.aliases``).

    Attributes:
        question, answer: columns.
        choices: the column of the options, or several columns with one option each; None for no multiple choice.
        context: column of the text to read first; None for none.
        ground_truth: finds the answer in the answer column's text; None takes the cell as it is.
    """

    question: str
    answer: str
    choices: str | tuple[str, ...] | None = None
    context: str | None = None
    ground_truth: Callable[[str], str | None] | None = None

    def __call__(self, row: Row) -> Item:
        """The item in `row`."""
        question = text_of(cell(row, self.question))
        context = "" if self.context is None else text_of(cell(row, self.context))
        answer = cell(row, self.answer)
        if self.ground_truth is not None:
            found = self.ground_truth(text_of(answer))
            if found is None:
                raise ValueError(f"ground_truth_extractor finds no answer in {text_of(answer)[-80:]!r}")
            answer = found
        if self.choices is None:
            return Item(question, plain_answer(answer), None, context)
        if isinstance(self.choices, tuple):
            options = Options(tuple(text_of(cell(row, each)) for each in self.choices))
        else:
            options = read_options(cell(row, self.choices))
        return Item(question, right_option(answer, options), options.texts, context)


def cell(row: Row, column: str) -> Any:
    """The value of `column`; ``a.b`` is key ``b`` of column ``a``, unless there is a column of that name.

    Raises:
        KeyError: there is none.
    """
    if column in row:
        return row[column]
    value: Any = row
    for key in column.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise KeyError(column)
        value = value[key]
    return value


def plain_answer(answer: Any) -> Any:
    """An answer cell as what is expected: a text, or a list of texts for a list."""
    if isinstance(answer, list | tuple):
        return [text_of(each) for each in answer]
    if answer is None:
        raise ValueError("the row has no answer")
    return text_of(answer)


def check_column(option: str, column: str, columns: Sequence[str]) -> str:
    """`column`, which must be there.

    Raises:
        InvalidOption: with the nearest names and all there are.
    """
    if column in columns or column.split(".")[0] in columns:
        return column
    close = nearest(column, columns, count=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    raise InvalidOption(option, column, f"the data set has no such column{meant}", valid=listed(columns, 40))


def guessed_column(option: str, names: Sequence[str], columns: Sequence[str]) -> str:
    """The first of `names` among `columns`.

    Raises:
        InvalidOption: none of them is there, so the option must be given.
    """
    folded = {column.casefold(): column for column in reversed(columns)}
    for name in names:
        if name in folded:
            return folded[name]
    raise InvalidOption(option, None, "must be given, since no column has a usual name", valid=listed(columns, 40))


def ground_truth_function(spec: Any) -> Callable[[str], str | None] | None:
    """The function that the option `ground_truth_extractor` describes.

    None or "direct" take the cell as it is; anything else is a function, or what `make_extractor` understands.

    Raises:
        UnknownExtractor, InvalidOption: naming the field.
    """
    if spec is None or spec == "direct":
        return None
    if callable(spec):
        function: Callable[[str], str | None] = spec
        return function
    return make_extractor(spec, field="ground_truth_extractor").extract
