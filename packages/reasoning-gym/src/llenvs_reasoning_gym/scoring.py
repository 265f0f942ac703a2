"""Scores: the upstream's value for an answer, shielded from what its scorers do wrong."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from llenvs_reasoning_gym.guard import EXECUTING, Refused, check_answer, check_entry

UNPARSABLE: dict[str, float] = {"countdown": 0.01, "puzzle24": 0.01}
"""What the upstream gives an answer that it cannot parse, where that is not 0.0. It is what an answer gets that
is refused, takes too long or makes the scorer raise."""


class Score(NamedTuple):
    """What an answer is worth.

    Attributes:
        value: in [0, 1].
        upstream: the upstream's value, where `value` is a corrected one; else None.
        error: what went wrong while scoring (refused, raised, too slow); else None.
    """

    value: float
    upstream: float | None = None
    error: str | None = None


def unparsable(dataset: str, error: str) -> Score:
    """The score of an answer that could not be scored."""
    return Score(UNPARSABLE.get(dataset, 0.0), None, error)


def score(dataset: Any, name: str, answer: str | None, entry: Mapping[str, Any], repair: bool) -> Score:
    """Score `answer` with the upstream's `dataset` object, in this process.

    Args:
        dataset: the object whose `score_answer` judges (of a composite: the part that `entry` came from).
        name: its name in the upstream.
        answer: what was extracted from the response; None for nothing.
        entry: the item, as the dataset gave it.
        repair: whether to correct the scorers in `REPAIRED`, and to refuse an unevaluated integral as an answer
            where the item's own answer holds none.
    """
    try:
        check_entry(name, entry)
        if name in EXECUTING and answer is not None and answer.strip():
            integrals = not repair or "Integral(" in entry["answer"]
            check_answer(name, answer, entry, integrals=integrals)
        if name == "decimal_arithmetic":
            # as in the thread that made the item: its generator sets the precision
            decimal.getcontext().prec = dataset.config.precision
        value = float(dataset.score_answer(answer, entry))
    except Refused as refusal:
        return unparsable(name, f"not scored: {refusal}")
    except Exception as error:  # noqa: BLE001 - a scorer may raise anything on a model's text
        return unparsable(name, f"the upstream's scorer raised {type(error).__name__}: {error}"[:300])
    if not math.isfinite(value):
        return unparsable(name, f"the upstream's scorer returned {value}")
    if repair and value > 0 and name in REPAIRED and answer is not None:
        corrected = REPAIRED[name](dataset, answer, entry, value)
        if corrected != value:
            return Score(corrected, value)
    return Score(value)


def _game_of_life_halting(dataset: Any, answer: str, entry: Mapping[str, Any], value: float) -> float:
    """The upstream compares ``bool(text)``, so every answer is right; compare the texts "True" and "False"."""
    return 1.0 if answer.strip().lower() == str(entry["answer"]).strip().lower() else 0.0


def _complex_arithmetic(dataset: Any, answer: str, entry: Mapping[str, Any], value: float) -> float:
    """The upstream's ``min(1.0, nan)`` is 1.0; a number that is none is a wrong answer."""
    given = dataset.parse_string_to_complex(answer)
    return 0.0 if given != given else value


def _puzzle24(dataset: Any, answer: str, entry: Mapping[str, Any], value: float) -> float:
    """The upstream takes any four numbers of the allowed range; they must be those of the puzzle."""
    used = [int(number) for number in re.findall(r"\b\d+\b", answer)]
    return value if sorted(used) == sorted(entry["metadata"]["numbers"]) else UNPARSABLE["puzzle24"]


REPAIRED: dict[str, Callable[[Any, str, Mapping[str, Any], float], float]] = {
    "game_of_life_halting": _game_of_life_halting,
    "complex_arithmetic": _complex_arithmetic,
    "puzzle24": _puzzle24,
}
"""Scorers that pay for wrong answers, each with its correction (called with dataset, answer, entry, value)."""
