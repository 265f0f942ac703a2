"""Scorers by name, as configuration files write them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownName, UnknownOption
from llenvs_huggingface.scoring.choice import ChoiceScorer, LetterOrTextScorer
from llenvs_huggingface.scoring.collection import AnyOfScorer, ClosestScorer, SetScorer
from llenvs_huggingface.scoring.custom import CallableScorer
from llenvs_huggingface.scoring.math import MathScorer
from llenvs_huggingface.scoring.number import NumericScorer, NumericToleranceScorer
from llenvs_huggingface.scoring.program import ProgramScorer
from llenvs_huggingface.scoring.scorer import Scorer
from llenvs_huggingface.scoring.text import ExactScorer, F1Scorer, TextScorer

_KINDS: dict[str, type[Scorer]] = {
    kind.name: kind
    for kind in (
        ExactScorer,
        TextScorer,
        F1Scorer,
        NumericScorer,
        NumericToleranceScorer,
        ChoiceScorer,
        LetterOrTextScorer,
        SetScorer,
        AnyOfScorer,
        ClosestScorer,
        MathScorer,
        ProgramScorer,
    )
}


class UnknownScorer(UnknownName):
    """No scorer of this name exists."""

    kind = "scorer"


def scorer_names() -> list[str]:
    """The names of all scorers, in the order of the documentation."""
    return list(_KINDS)


def make_scorer(spec: Any, *, field: str = "scoring") -> Scorer:
    """The scorer that `spec` describes.

    Args:
        spec: a name ("numeric"), a mapping with the name under ``name`` or ``type`` and options beside it
            (``{"name": "numeric_tolerance", "relative": 0.01}``), a function ``(answer, expected) -> number``, or
            a scorer (returned as it is).
        field: what errors call the place.

    Raises:
        UnknownScorer, UnknownOption, InvalidOption: with the nearest names.
        NotInstalled: `math` without math-verify.
    """
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, str):
        return _build(spec, {}, field)
    if isinstance(spec, Mapping):
        options = dict(spec)
        names = [options.pop(key) for key in ("name", "type") if key in options]
        if len(names) == 1 and isinstance(names[0], str):
            return _build(names[0], options, field)
        raise InvalidOption(field, dict(spec), "needs the scorer's name under 'name'", valid=", ".join(_KINDS))
    if callable(spec):
        return CallableScorer(spec)
    raise InvalidOption(field, spec, "is no scorer", valid="a name, a mapping with a name, or a function")


def _build(name: str, options: dict[str, Any], field: str) -> Scorer:
    kind = _KINDS.get(name)
    if kind is None:
        raise UnknownScorer(name, list(_KINDS), f"in {field}")
    fields = {each.name: each for each in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    for key, value in options.items():
        if key not in fields:
            raise UnknownOption(str(key), list(fields), f"of the scorer {name!r}")
        if fields[key].name == "scorer":
            options[key] = make_scorer(value, field=f"{field}.{key}")
            continue
        wanted = hints[key]
        fits = isinstance(value, bool) if wanted is bool else isinstance(value, int | float)
        if not fits or (wanted is not bool and isinstance(value, bool)):
            raise InvalidOption(
                f"{field}.{key}", value, f"must be {'true or false' if wanted is bool else 'a number'}"
            )
    return kind(**options)
