"""Options of environments: checked, documented, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from llenvs.core.errors import InvalidOption, LLEnvsError, UnknownOption, listed


class EnvironmentOptions(BaseModel):
    """Options that every environment takes. Adapters derive their own; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    extra_rewards: Any = Field(
        default=None,
        description="Reward functions added to the benchmark's own signals: names (format, length), mappings "
        "such as {type: format, tag: answer, weight: 0.1}, or callables.",
    )


class SingleTurnOptions(EnvironmentOptions):
    """Options of environments of one question and one answer."""

    answer_extractor: Any = Field(
        default="tag_based",
        description="How the answer is found in the response: the name of an extractor, a mapping with its "
        "options, or a list of them as a fallback chain.",
    )


OptionsT = TypeVar("OptionsT", bound=BaseModel)


def parse_options(model: type[OptionsT], raw: Mapping[str, Any], where: str = "") -> OptionsT:
    """`raw` as an instance of `model`.

    Args:
        model: a pydantic model.
        raw: option values by name.
        where: what the options belong to, put into the message.

    Raises:
        UnknownOption: a key that the model lacks, with the nearest names.
        InvalidOption: a value that does not fit, with the dotted field and what is valid.
    """
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        raise option_error(error, model, where) from None


def option_error(error: ValidationError, model: type[BaseModel], where: str = "") -> LLEnvsError:
    """The first problem of a pydantic validation error as one of ours."""
    problem = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        valid = _names_at(model, problem["loc"][:-1])
        return UnknownOption(str(problem["loc"][-1]), valid, f"options of {where}" if where else "")
    context = problem.get("ctx", {})
    valid_text = str(context.get("expected", ""))
    message = problem["msg"].removeprefix("Value error, ")  # which pydantic puts before the words of our checks
    message = message[:1].lower() + message[1:]
    field = f"{where}: {path}" if where and path else path or where
    if problem["type"] == "missing":
        return InvalidOption(field, None, "is needed")
    return InvalidOption(field, problem["input"], message, valid=valid_text)


def _names_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Field names of the model found by following `path` through nested models; those of `model` as a fallback."""
    current: type[BaseModel] = model
    for part in path:
        info = current.model_fields.get(str(part))
        nested = info.annotation if info is not None else None
        candidates = [nested, *getattr(nested, "__args__", ())]
        for candidate in candidates:
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                current = candidate
                break
    return sorted(current.model_fields)


__all__ = ["EnvironmentOptions", "SingleTurnOptions", "listed", "option_error", "parse_options"]
