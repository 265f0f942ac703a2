"""Options of the environments: ours, and every keyword of the upstream's generators with its type and default."""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from llenvs.core.options import SingleTurnOptions
from llenvs_reasoning_gym.catalogue import COMPOSITE, WITHOUT_CURRICULUM
from llenvs_reasoning_gym.upstream import config_class

DEFAULT_SIZE = 500
DEFAULT_SEED = 42
MAX_SIZE = 10**9
"""More tasks than anybody runs; far below what ``len`` can give."""

UpstreamPrompt = Literal["default", "simple", "direct", "chain_of_draft", "DeepSeekZero"]


class ReasoningGymOptions(SingleTurnOptions):
    """Options that all environments of ReasoningGym take."""

    size: int = Field(DEFAULT_SIZE, ge=1, le=MAX_SIZE, description="Number of tasks.")
    seed: int = Field(
        DEFAULT_SEED,
        ge=0,
        description="Seed of the dataset. The upstream makes task i from seed + i, so neighbouring seeds share "
        "nearly all their tasks; see seed_stride.",
    )
    seed_stride: int = Field(
        1,
        ge=1,
        description="The upstream's seed is seed * seed_stride. From seed_stride = size on, different seeds share "
        "no task; 1 is the upstream's own numbering.",
    )
    reward: Literal["score", "correctness"] = Field(
        "score",
        description="Which signal counts in the total: the upstream's score with its partial credit, or 1.0 for "
        "a score of exactly 1.0 and else 0.0. The other is reported with weight 0.",
    )
    repair_scorers: bool = Field(
        True,
        description="Correct the scorers that pay for wrong answers (game_of_life_halting, complex_arithmetic, "
        "puzzle24, and the integrations for an unevaluated Integral). False gives the upstream's value.",
    )
    time_limit: float = Field(
        10.0,
        gt=0,
        description="Seconds that scoring one answer may take in the worker process; an answer that takes longer "
        "gets what an unparsable one gets.",
    )
    upstream_prompt: UpstreamPrompt | None = Field(
        None,
        description="One of the upstream's own system prompts, put before the question as a system message.",
    )


class GeneratorOptions(BaseModel):
    """Keywords of an upstream generator, as a part of a composite gives them."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    size: int = Field(DEFAULT_SIZE, ge=1, le=MAX_SIZE, description="Number of tasks.")
    seed: int = Field(DEFAULT_SEED, ge=0, description="Seed of the dataset.")


class CompositePart(BaseModel):
    """One dataset of a composite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Name of the generator.")
    weight: float = Field(1.0, gt=0, description="Its share of the tasks, relative to the other weights.")
    config: dict[str, Any] = Field(default_factory=dict, description="Options of the generator, level included.")


_LEVEL = (
    int | None,
    Field(None, ge=0, description="Curriculum level, 0 the easiest; options given beside it take precedence."),
)
_PARTS = (
    list[CompositePart],
    Field(min_length=1, description="The datasets to mix: {name, weight, config} each, names unique."),
)


@functools.cache
def options_for(name: str) -> type[ReasoningGymOptions]:
    """Options of environment `name`: `ReasoningGymOptions` and the generator's own."""
    fields: dict[str, Any] = {"datasets": _PARTS} if name == COMPOSITE else _generator_fields(name)
    model: type[ReasoningGymOptions] = create_model(
        f"{_camel(name)}Options", __base__=ReasoningGymOptions, **fields
    )
    return model


@functools.cache
def generator_options(name: str) -> type[GeneratorOptions]:
    """Options of generator `name` alone."""
    fields: dict[str, Any] = {"datasets": _PARTS} if name == COMPOSITE else _generator_fields(name)
    model: type[GeneratorOptions] = create_model(f"{_camel(name)}Config", __base__=GeneratorOptions, **fields)
    return model


def upstream_keywords(options: BaseModel) -> dict[str, Any]:
    """The generator's keywords that were given in `options`, as the upstream's dataclass takes them."""
    ours = {*ReasoningGymOptions.model_fields, "level"} - {"size", "seed"}
    given = sorted(options.model_fields_set - ours)
    return {key: _as_upstream(getattr(options, key)) for key in given}


def _generator_fields(name: str) -> dict[str, Any]:
    fields = {} if name in WITHOUT_CURRICULUM else {"level": _LEVEL}
    return fields | _dataclass_fields(config_class(name), skip=("size", "seed"))


def _dataclass_fields(cls: Any, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields: dict[str, Any] = {}
    for each in dataclasses.fields(cls):
        if each.name in skip or not each.init:
            continue
        annotation = _annotation(hints[each.name])
        description = f"Passed to the upstream's {cls.__name__}."
        if each.default_factory is not dataclasses.MISSING:
            info = Field(default_factory=each.default_factory, description=description)
        elif each.default is not dataclasses.MISSING:
            info = Field(each.default, description=description)
            annotation = _admitting(annotation, each.default)
        else:
            info = Field(description=description)
        fields[each.name] = (annotation, info)
    return fields


def _annotation(hint: Any) -> Any:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _nested(hint)
    items = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and len(items) == 1:
        return tuple.__class_getitem__((items[0], ...))  # the upstream writes tuple[str] for any number of them
    return hint


def _admitting(annotation: Any, default: Any) -> Any:
    """`annotation`, widened where the upstream's own default does not fit it (an int field with default 0.2)."""
    try:
        TypeAdapter(annotation).validate_python(default)
    except ValidationError:
        return annotation | type(default)
    return annotation


@functools.cache
def _nested(cls: type) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", frozen=True)
    model: type[BaseModel] = create_model(cls.__name__, __config__=config, **_dataclass_fields(cls))
    _upstream_class[model] = cls
    return model


_upstream_class: dict[type[BaseModel], Any] = {}


def _as_upstream(value: Any) -> Any:
    cls = _upstream_class.get(type(value))
    if cls is None:
        return value
    return cls(**{key: _as_upstream(getattr(value, key)) for key in value.model_fields_set})


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
