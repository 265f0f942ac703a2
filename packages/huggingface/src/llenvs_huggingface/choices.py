"""Multiple choice: the options of a row, which of them is right, and in which order they are shown."""

from __future__ import annotations

import ast
import hashlib
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from llenvs.core.encoding import canonical
from llenvs_huggingface.item import text_of

LETTERS = string.ascii_uppercase
"""Letters of options in the order shown; a question has 26 options at most."""


class Options(NamedTuple):
    """The options of a row: their texts, and the row's own labels of them ("A", "1"; () when it has none)."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()


def read_options(cell: Any) -> Options:
    """The options in a cell.

    Understood: a list of texts; ``{"text": [...], "label": [...]}`` (ARC); a list of ``{"text", "label"}``; a
    mapping of label to text; a Python list literal as text (MuSR).

    Raises:
        ValueError: the cell holds no options, or more than 26.
    """
    options = _read(cell)
    if not 1 <= len(options.texts) <= len(LETTERS):
        raise ValueError(f"a question needs 1 to {len(LETTERS)} options, this row has {len(options.texts)}")
    return options


def _read(cell: Any) -> Options:
    if isinstance(cell, str):
        try:
            cell = ast.literal_eval(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise ValueError("the options are a text that is no Python list") from None
    if isinstance(cell, Mapping):
        if "text" in cell and "label" in cell:
            return Options(tuple(map(text_of, cell["text"])), tuple(map(text_of, cell["label"])))
        return Options(tuple(map(text_of, cell.values())), tuple(map(text_of, cell)))
    if isinstance(cell, list | tuple):
        if cell and all(isinstance(each, Mapping) and {"text", "label"} <= set(each) for each in cell):
            return Options(
                tuple(text_of(each["text"]) for each in cell), tuple(text_of(each["label"]) for each in cell)
            )
        return Options(tuple(map(text_of, cell)))
    raise ValueError(f"no options can be read from a {type(cell).__name__}")


def right_option(answer: Any, options: Options) -> int:
    """The number (from 0) of the option that the cell `answer` names.

    An integer is an index from 0. A text is looked for among the row's labels, then the letters A, B, ..., then
    the options' texts; digits without labels are an index from 0.

    Raises:
        ValueError: it names none of them.
    """
    count = len(options.texts)
    if isinstance(answer, bool) or answer is None:
        raise ValueError(f"{answer!r} names no option")
    if isinstance(answer, int | float) and float(answer).is_integer():
        return _checked(int(answer), count, answer)
    name = text_of(answer).strip()
    if name in options.labels:
        return options.labels.index(name)
    bare = name.strip("().: ")
    if len(bare) == 1 and bare.upper() in LETTERS[:count]:
        return LETTERS.index(bare.upper())
    stripped = [text.strip() for text in options.texts]
    if stripped.count(name) == 1:
        return stripped.index(name)
    if bare.isdecimal() and len(bare) <= 2:
        return _checked(int(bare), count, answer)
    raise ValueError(f"{name[:80]!r} names none of the {count} options")


def _checked(index: int, count: int, answer: Any) -> int:
    if not 0 <= index < count:
        raise ValueError(f"{answer!r} names none of the {count} options")
    return index


def shown_order(seed: int, question: str, texts: Sequence[str]) -> list[int]:
    """The numbers of the options in the order shown: a function of the seed and the row's content alone.

    Option i (by its place in the row) is ranked by ``sha256(f"{seed}\\n{content}\\n{i}")``, where content is the
    canonical JSON of the question and the options; so the order of a row does not change with the data set's size,
    split, order or process, and differs from row to row.
    """
    content = canonical([question, list(texts)])

    def rank(index: int) -> bytes:
        return hashlib.sha256(f"{seed}\n{content}\n{index}".encode()).digest()

    return sorted(range(len(texts)), key=rank)


def rendered(texts: Sequence[str]) -> str:
    """The options as a model sees them: one a line, ``A. text``."""
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))
