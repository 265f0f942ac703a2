"""From a configuration to what runs: everything is built and checked before the first request."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from llenvs.core.closing import Closing
from llenvs.core.environment import Environment
from llenvs.core.errors import (
    AdapterNotInstalled,
    InvalidOption,
    LLEnvsError,
    TaskIndexOutOfRange,
    UnknownAdapter,
    UnknownBackend,
    UnknownEnvironment,
    UnknownName,
    UnknownOption,
)
from llenvs.core.options import parse_options
from llenvs.core.segmentation.build import long_form, segmented_environment
from llenvs.evaluation.config import EnvironmentConfig, EvaluationConfig, load_config
from llenvs.evaluation.environment_building import build_environment, format_mismatch
from llenvs.evaluation.prompting import prompt_spec
from llenvs.evaluation.yaml_source import Key
from llenvs.inference.backend import Backend
from llenvs.inference.backends import backend_class, make_backend
from llenvs.inference.errors import BackendError
from llenvs.inference.prompts import PromptBuilder, detect_profile
from llenvs.inference.sampling import SamplingParams


@dataclass(frozen=True)
class PreparedEnvironment:
    """One environment of a run, built.

    Attributes:
        label: what the results call it.
        environment: the environment.
        task_indices: the tasks to run.
        repeats: attempts at each.
        max_steps: the run's own limit on actions, or None.
        prompt_builder: makes the messages.
        options: what the environment was built with.
        segmentation: how its responses are segmented, as the configuration has it, but without short forms; None
            when they are not.
    """

    label: str
    environment: Environment[Any]
    task_indices: Sequence[int]
    repeats: int = 1
    max_steps: int | None = None
    prompt_builder: PromptBuilder = field(default_factory=PromptBuilder)
    options: Mapping[str, Any] = field(default_factory=dict)
    segmentation: Any = None

    @property
    def num_trajectories(self) -> int:
        """Tasks times repeats."""
        return len(self.task_indices) * self.repeats


@dataclass(frozen=True)
class PreparedRun(Closing):
    """A run that is ready. `close` frees the environments and the backend; it is a context manager.

    Attributes:
        config: what it was made from.
        environments: in the order of the configuration.
        backend: None when it was prepared without.
        model: name of the model ("" when the backend's default is not known without building it).
        sampling: sampling parameters.
        backend_options: what the backend is built with.
        notices: what a person should know before it runs.
    """

    config: EvaluationConfig
    environments: tuple[PreparedEnvironment, ...]
    backend: Backend | None
    model: str
    sampling: SamplingParams
    backend_options: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def num_trajectories(self) -> int:
        """Of all environments."""
        return sum(each.num_trajectories for each in self.environments)

    def close(self) -> None:
        """Free everything; twice is fine."""
        for each in self.environments:
            each.environment.close()
        if self.backend is not None:
            self.backend.close()


def prepare_run(
    config: EvaluationConfig | str | Path | Mapping[str, Any], *, with_backend: bool = True
) -> PreparedRun:
    """Build and check everything that `config` names.

    Args:
        config: a configuration, or what `load_config` takes.
        with_backend: False checks the backend's options without building it (which may load a model).

    Raises:
        ConfigError: with the line and the field.
        BackendError: the backend cannot be made (a missing key).
    """
    if not isinstance(config, EvaluationConfig):
        config = load_config(config)
    sampling, options = _model_options(config)
    name = config.model.model or ""
    environments: list[PreparedEnvironment] = []
    notices: list[str] = []
    backend: Backend | None = None
    try:
        for position, entry in enumerate(config.environments):
            environments.append(_environment(config, position, entry, name, notices))
        _check_labels(config, environments)
        if with_backend:
            backend = _backend(config, options)
            if backend.model != name:
                profile = detect_profile(backend.model)
                environments = [
                    replace(each, prompt_builder=PromptBuilder(each.prompt_builder.spec, profile))
                    for each in environments
                ]
    except BaseException:
        for each in environments:
            each.environment.close()
        raise
    return PreparedRun(
        config,
        tuple(environments),
        backend,
        name if backend is None else backend.model,
        sampling,
        options,
        tuple(notices),
    )


# -- environments -----------------------------------------------------------------------------------------


def _environment(
    config: EvaluationConfig, position: int, entry: EnvironmentConfig, model: str, notices: list[str]
) -> PreparedEnvironment:
    key: Key = ("environments", position)
    for name in entry.options:
        if name in ("name", "adapter") or name in (entry.model_extra or {}):
            text = "is no option" if name in ("name", "adapter") else "is given here and beside the name"
            raise config.error((*key, "options", name), text)
    builder = _prompt(config, entry, key, model)
    container = _container(config, key, entry)
    try:
        environment, options = build_environment(
            entry.name, entry.adapter, entry.environment_options, builder, container
        )
    except LLEnvsError as error:
        raise _environment_error(config, key, entry, error) from None
    environment = _segmented(config, key, entry, environment)
    mismatch = format_mismatch(environment, builder)
    if mismatch is not None:
        notices.append(mismatch)
    chooses_itself = entry.num_tasks is not None or entry.task_indices is not None
    try:
        tasks = choose_tasks(
            environment, entry.num_tasks if chooses_itself else config.num_tasks, entry.task_indices
        )
    except LLEnvsError as error:
        environment.close()
        raise config.error((*key, "task_indices"), str(error)) from None
    return PreparedEnvironment(
        entry.label or environment.spec.id,
        environment,
        tasks,
        config.repeats if entry.repeats is None else entry.repeats,
        config.max_steps if entry.max_steps is None else entry.max_steps,
        builder,
        options,
        long_form(entry.segmentation),
    )


def _segmented(
    config: EvaluationConfig, key: Key, entry: EnvironmentConfig, environment: Environment[Any]
) -> Environment[Any]:
    """`environment`, segmented if the entry wants it; closed when that cannot be."""
    if entry.segmentation is None:
        return environment
    try:
        return segmented_environment(environment, entry.segmentation)
    except LLEnvsError as error:
        environment.close()
        raise _part_error(config, (*key, "segmentation"), entry.segmentation, error) from None


def _container(config: EvaluationConfig, key: Key, entry: EnvironmentConfig) -> Any:
    """Where the environment runs: None for in this process."""
    if entry.container is None and config.isolation == "none":
        return None
    from llenvs.container.isolation import resolve_isolation

    address = {"name": entry.name, "adapter": entry.adapter, "container": entry.container}
    try:
        return resolve_isolation([address], config.isolation)[0]
    except UnknownAdapter as error:
        raise _environment_error(config, key, entry, error) from None
    except InvalidOption as error:
        field = error.field.rpartition(": ")[2]
        place: Key = () if field in ("", "container") else (field,)
        raise config.error((*key, "container", *place), str(error)) from None
    except LLEnvsError as error:
        raise config.error((*key, "container"), str(error)) from None


def choose_tasks(
    environment: Environment[Any], num_tasks: int | None, task_indices: Sequence[int] | None
) -> Sequence[int]:
    """The tasks to run: those of `task_indices`, or the first `num_tasks`, or all.

    Raises:
        TaskIndexOutOfRange: an index is not in ``0 <= i < len(environment)``, or there is no task.
        InvalidOption: an index occurs twice, or `num_tasks` is under 1 or given together with `task_indices`.
    """
    size = len(environment)
    if task_indices is None:
        if num_tasks is not None and (isinstance(num_tasks, bool) or num_tasks < 1):
            raise InvalidOption("num_tasks", num_tasks, "must be at least 1")
        if size < 1:
            raise TaskIndexOutOfRange(None, size, environment.spec.id)
        return range(size if num_tasks is None else min(num_tasks, size))
    if num_tasks is not None:
        raise InvalidOption("num_tasks", num_tasks, "cannot be given together with task_indices")
    tasks = task_indices if isinstance(task_indices, range) else tuple(task_indices)
    ends = (tasks[0], tasks[-1]) if isinstance(tasks, range) and tasks else tasks
    for index in ends:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < size:
            raise TaskIndexOutOfRange(index, size, environment.spec.id)
    if not tasks:
        raise InvalidOption("task_indices", task_indices, "must hold at least one index")
    if len(set(tasks)) != len(tasks):
        twice = next(i for i in tasks if tasks.count(i) > 1)
        raise InvalidOption("task_indices", twice, "occurs twice; for several attempts use repeats")
    return tasks


def _environment_error(
    config: EvaluationConfig, key: Key, entry: EnvironmentConfig, error: LLEnvsError
) -> LLEnvsError:
    options = entry.environment_options
    match error:
        case UnknownAdapter() | AdapterNotInstalled():
            apart = isinstance(error, AdapterNotInstalled) and entry.container is None
            text = f"{error}; or keep it in a Python of its own: isolation: auto" if apart else str(error)
            return config.error((*key, "name" if entry.adapter is None else "adapter"), text)
        case UnknownEnvironment() if _place_of(error.name, options, as_key=False) is None:
            return config.error((*key, "name"), str(error))
        case UnknownOption() if error.name in options:
            own = [name for name in EnvironmentConfig.model_fields if name != "options"]
            known = UnknownOption(error.name, [*error.valid, *own], f"llenvs info {_address(entry)} lists them")
            return config.error((*key, *_written(entry, (error.name,))), str(known))
        case InvalidOption():
            dotted = error.field.rpartition(": ")[2]
            parts: Key = tuple(int(part) if part.isdecimal() else part for part in dotted.split("."))
            text = f"{error.problem}, got {error.value!r}" + (f"; valid: {error.valid}" if error.valid else "")
            return config.error((*key, *_written(entry, parts)), text)
        case UnknownName():
            place = _place_of(error.name, options, as_key=isinstance(error, UnknownOption))
            return config.error((*key, *_written(entry, place or ())), str(error))
        case _:
            return config.error(key, str(error))


def _written(entry: EnvironmentConfig, place: Key) -> Key:
    """Where an environment's option stands in its entry: beside the name, or under ``options``."""
    return ("options", *place) if place and place[0] in entry.options else place


def _place_of(name: str, value: Any, *, as_key: bool) -> Key | None:
    """Where in nested `value` the text `name` stands, as a key or as a value; None when it does not."""
    if not as_key and value == name:
        return ()
    if isinstance(value, Mapping):
        if as_key and name in value:
            return (name,)
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return None
    for part, inner in items:
        place = _place_of(name, inner, as_key=as_key)
        if place is not None:
            return (part, *place)
    return None


def _address(entry: EnvironmentConfig) -> str:
    return entry.name if entry.adapter is None else f"{entry.adapter}/{entry.name}"


def _prompt(config: EvaluationConfig, entry: EnvironmentConfig, key: Key, model: str) -> PromptBuilder:
    own = entry.system_prompt is not None
    field_key: Key = (*key, "system_prompt") if own else ("system_prompt",)
    if not own and config.system_prompt is None and config.prompt is not None:
        field_key = ("prompt",)
    given = entry.system_prompt if own else config.system_prompt
    try:
        spec = prompt_spec(given, config.prompt)
        builder = PromptBuilder(spec, detect_profile(model))
        builder.explain()  # slots without a value show here
    except LLEnvsError as error:
        whole = config.prompt if field_key == ("prompt",) else given
        raise _part_error(config, field_key, whole, error) from None
    return builder


def _part_error(config: EvaluationConfig, key: Key, given: Any, error: LLEnvsError) -> LLEnvsError:
    """`error`, placed at the part of what is `given` under `key` that it names."""
    match error:
        case InvalidOption():
            named, text = error.field, str(error).removeprefix(f"{error.field}: ")
        case UnknownOption():
            named, text = error.name, str(error)
        case UnknownName():
            return config.error((*key, *(_place_of(error.name, given, as_key=False) or ())), str(error))
        case _:
            return config.error(key, str(error))
    first, *inner = named.split(".")
    if first != key[-1]:
        place = _place_of(named, given, as_key=True) if isinstance(error, UnknownOption) else None
        return config.error((*key, *(place or ())), str(error))
    return config.error((*key, *(int(part) if part.isdecimal() else part for part in inner)), text)


def _check_labels(config: EvaluationConfig, environments: Sequence[PreparedEnvironment]) -> None:
    first: dict[str, int] = {}
    for position, each in enumerate(environments):
        if each.label in first:
            raise config.error(
                ("environments", position),
                f"is called {each.label!r} like environments[{first[each.label]}]; give one of them a label",
            )
        first[each.label] = position


# -- the model --------------------------------------------------------------------------------------------


def _model_options(config: EvaluationConfig) -> tuple[SamplingParams, dict[str, Any]]:
    """Sampling parameters and backend options, checked by name."""
    try:
        cls = backend_class(config.model.backend)
    except LLEnvsError as error:
        raise config.error(("model", "backend"), str(error)) from None
    parameters = inspect.signature(cls).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    sampling = config.model.sampling.model_dump(exclude_unset=True)
    options: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for name, value in config.model.other_options.items():
        if name in parameters:
            options[name] = value
        elif name in SamplingParams.model_fields:
            if name in sampling:
                raise config.error(("model", name), "is given here and under sampling")
            beside[name] = value
        elif takes_any:
            options[name] = value
        else:
            valid = [*(n for n in parameters), *SamplingParams.model_fields, "backend", "sampling"]
            raise config.error(("model", name), str(UnknownOption(name, list(dict.fromkeys(valid)))))
    if config.model.model is not None:
        options["model"] = config.model.model
    try:
        return parse_options(SamplingParams, {**sampling, **beside}), options
    except InvalidOption as error:
        place: Key = ("model", error.field) if error.field in beside else ("model", "sampling", error.field)
        raise config.error(place, str(error).partition(": ")[2]) from None


def _backend(config: EvaluationConfig, options: Mapping[str, Any]) -> Backend:
    try:
        return make_backend(config.model.backend, **options)
    except BackendError:
        raise
    except UnknownBackend as error:
        raise config.error(("model", "backend"), str(error)) from None
    except UnknownOption as error:
        place = _place_of(error.name, options, as_key=True) or (error.name,)
        raise config.error(("model", *place), str(error)) from None
    except InvalidOption as error:
        parts: Key = tuple(error.field.replace(": ", ".").split("."))  # "retry: attempts" of nested options
        text = str(error).removeprefix(f"{error.field}: ")
        raise config.error(parts if parts[0] == "model" else ("model", *parts), text) from None
    except LLEnvsError as error:
        raise config.error(("model",), str(error)) from None
