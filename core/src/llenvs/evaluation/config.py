"""The configuration of a run, as it stands in YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from llenvs.core.errors import nearest
from llenvs.evaluation.loggers import LOGGERS
from llenvs.evaluation.yaml_source import ConfigError, ConfigSource, Key, UnknownField, dotted, read_yaml
from llenvs.inference.sampling import SamplingParams

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OTHER_WORDS = {
    "limit": "num_tasks",
    "concurrency": "batch_size",
    "max_concurrency": "batch_size",
    "num_workers": "batch_size",
    "num_repeats": "repeats",
    "num_samples": "repeats",
    "n": "repeats",
    "output": "output_dir",
    "loggers": "log",
    "env": "environments",
    "envs": "environments",
    "environment": "environments",
    "system": "system_prompt",
}
_EXAMPLES: dict[object, str] = {
    "model": ": {backend: openai, model: gpt-4o}",
    "environments": ": [{name: leg_counting, adapter: reasoning_gym}]",
}


class EnvironmentConfig(BaseModel):
    """One environment of a run. Keys that are not listed here are options of the environment itself.

    Attributes:
        name: its name, or ``adapter/name``.
        adapter: its adapter, when `name` does not say it.
        label: what the results call it; by default ``adapter/name``.
        num_tasks: evaluate the first so many tasks; None for the run's `num_tasks`.
        task_indices: evaluate these tasks instead.
        repeats: attempts at each task; None for the run's `repeats`.
        max_steps: end an episode after so many actions (of a segmented environment: whole responses); None for the
            environment's own limit alone.
        system_prompt: None for the run's.
        segmentation: takes responses segment by segment: the name of a segmenter, or a mapping with the name under
            ``by`` and its options, ``max_segments`` and ``reward_functions`` beside it (see
            `llenvs.core.segmentation.segmented_environment`); None for whole responses.
        container: where it runs instead of in this process: a runtime ("process", "venv") or a mapping of the
            fields of `llenvs.container.ContainerConfig`; None for the run's `isolation`.
        options: options of the environment, for those whose name is one of the keys above.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(min_length=1)
    adapter: str | None = None
    label: str | None = Field(default=None, min_length=1)
    num_tasks: int | None = Field(default=None, ge=1)
    task_indices: tuple[int, ...] | None = Field(default=None, min_length=1)
    repeats: int | None = Field(default=None, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    system_prompt: Any = None
    segmentation: Any = None
    container: Any = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.num_tasks is not None and self.task_indices is not None:
            raise ValueError("takes num_tasks or task_indices, not both")
        return self

    @property
    def environment_options(self) -> dict[str, Any]:
        """The options that the environment is built with."""
        return {**(self.model_extra or {}), **self.options}


class ModelConfig(BaseModel):
    """The model. Keys that are not listed here are options of the backend or sampling parameters.

    Attributes:
        backend: name of the backend.
        model: name or path of the model; None for the backend's default.
        sampling: sampling parameters; they may also stand beside the other keys.
    """

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    backend: str = Field(min_length=1)
    model: str | None = None
    sampling: SamplingParams = Field(default_factory=SamplingParams)

    @property
    def other_options(self) -> dict[str, Any]:
        """Options of the backend, and sampling parameters that stand among them."""
        return dict(self.model_extra or {})


class EvaluationConfig(BaseModel):
    """A whole run.

    Attributes:
        environments: what to evaluate on; a text is short for ``{name: text}``.
        model: what to evaluate.
        system_prompt: a name, a text, or a mapping (see `llenvs.inference.prompts.make_system_prompt`).
        prompt: a whole prompt as a mapping (see `llenvs.inference.prompts.make_prompt`).
        output_dir: the run folder; None keeps nothing on disk.
        num_tasks: evaluate the first so many tasks of each environment; None for all.
        repeats: attempts at each task.
        batch_size: trajectories in flight at once; None for the backend's `max_concurrency`.
        max_steps: end an episode after so many actions.
        seed: everything random follows from it.
        log: where to report to: console, file, wandb.
        save_states: write every trajectory exactly (`Trajectory.to_json`) beside its readable record.
        retry_errors: when the run is resumed, try trajectories again that ended in an error.
        max_errors: stop when more trajectories than this ended in an error; None for no limit.
        trajectory_timeout: seconds after which a trajectory is given up as an error; None for no limit.
        isolation: where environments run that do not say it themselves: "none" (in this process), "auto"
            (adapters that are installed in this process, each other one in a sandbox of its own), "process",
            "venv".
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    environments: tuple[EnvironmentConfig, ...] = Field(min_length=1)
    model: ModelConfig
    system_prompt: Any = None
    prompt: Any = None
    output_dir: Path | None = None
    num_tasks: int | None = Field(default=None, ge=1)
    repeats: int = Field(default=1, ge=1)
    batch_size: int | None = Field(default=None, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    seed: int = 0
    log: tuple[str, ...] = ("console",)
    save_states: bool = False
    retry_errors: bool = True
    max_errors: int | None = Field(default=None, ge=0)
    trajectory_timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    isolation: Literal["none", "auto", "process", "venv"] = "none"

    _source: ConfigSource = PrivateAttr(default_factory=lambda: ConfigSource({}))

    @field_validator("environments", mode="before")
    @classmethod
    def _one_environment(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | Mapping) else value

    @field_validator("output_dir", mode="before")
    @classmethod
    def _a_path(cls, value: Any) -> Any:
        if isinstance(value, str) and (not value.strip() or "\0" in value):
            raise ValueError(f"must be the path of a folder, got {value!r}")
        return value

    @field_validator("log", mode="before")
    @classmethod
    def _split_log(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return () if value is None else value

    @field_validator("log")
    @classmethod
    def _known_loggers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in LOGGERS:
                close = nearest(name, LOGGERS)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"unknown logger {name!r}{hint} (valid: {', '.join(LOGGERS)})")
        return value

    def error(self, key: Key, problem: str) -> ConfigError:
        """An error about the value at `key` (such as ``("model", "backend")``), with its line."""
        return self._source.error(key, problem)


def load_config(
    source: str | Path | Mapping[str, Any], *, overrides: Mapping[str, Any] | None = None
) -> EvaluationConfig:
    """A checked configuration.

    Args:
        source: path of a YAML file, or the mapping that would stand in one. ``${NAME}`` in texts of `model`
            and in `output_dir` is replaced by the environment variable of that name.
        overrides: values to put in place of those of the file, by dotted key (``{"model.model": "gpt-4o"}``).

    Raises:
        ConfigError: with file, line, field, what is valid and the nearest names.
    """
    read = ConfigSource(dict(source)) if isinstance(source, Mapping) else read_yaml(source)
    read = read.with_overrides(overrides or {})
    data = dict(read.data)
    for key in ("model", "output_dir"):
        if key in data:
            data[key] = _with_variables(data[key], (key,), read)
    read = ConfigSource(data, read.name, read.lines, read.overridden)
    try:
        config = EvaluationConfig.model_validate(data)
    except ValidationError as error:
        raise _config_error(error, read) from None
    config._source = read
    return config


def _with_variables(value: Any, key: Key, source: ConfigSource) -> Any:
    if isinstance(value, Mapping):
        return {k: _with_variables(v, (*key, k), source) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_with_variables(v, (*key, i), source) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise source.error(key, f"the environment variable {match[1]} is not set")
        return found

    return _VARIABLE.sub(replaced, value)


def _config_error(error: ValidationError, source: ConfigSource) -> ConfigError:
    """The first problem, in the order of the file."""
    problems = error.errors(include_url=False)
    places = [problem["loc"] for problem in problems]
    # A list with a broken item is also called too short: the item is what to say.
    problems = [
        problem
        for problem in problems
        if not any(len(p) > len(problem["loc"]) and p[: len(problem["loc"])] == problem["loc"] for p in places)
    ]

    def line(problem: Any) -> int:
        return source.error(tuple(problem["loc"]), "").line or 0

    problem = min(problems, key=line)
    key: Key = tuple(part for part in problem["loc"] if not str(part).startswith("function-"))
    context = problem.get("ctx", {})
    match problem["type"]:
        case "extra_forbidden":
            name = str(key[-1])
            valid = _fields_at(key[:-1])
            meant = _OTHER_WORDS.get(name)
            if meant in valid:
                text = f"unknown field {name!r}; did you mean {meant!r}?"
            else:
                text = str(UnknownField(name, valid))
        case "missing":
            text = "is missing"
            if key == ("model",):
                text += f"; it names the backend and the model{_EXAMPLES['model']}"
            elif key == ("environments",):
                text += f"; it lists what to evaluate on{_EXAMPLES['environments']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            text = f"must be a mapping{_EXAMPLES.get(key[-1], '')}, got {_shown(problem['input'])}"
        case "tuple_type" | "too_short" if key == ("environments",):
            text = f"must be a list{_EXAMPLES['environments']}, got {_shown(problem['input'])}"
        case "tuple_type":
            text = f"must be a list, got {_shown(problem['input'])}"
        case "path_type":
            text = f"must be the path of a folder, got {_shown(problem['input'])}"
        case "value_error":
            text = f"{context['error']}"
        case _:
            text = f"{problem['msg'][0].lower()}{problem['msg'][1:]}, got {_shown(problem['input'])}"
    return source.error(key, text)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fields_at(key: Sequence[str | int]) -> list[str]:
    if key[:2] == ("model", "sampling"):
        return list(SamplingParams.model_fields)
    return list(EvaluationConfig.model_fields)


__all__ = [
    "ConfigError",
    "EnvironmentConfig",
    "EvaluationConfig",
    "ModelConfig",
    "dotted",
    "load_config",
]
