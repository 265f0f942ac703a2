"""Environments and data sets of the user's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption, LLEnvsError, UpstreamFailed, listed
from llenvs.core.simulator import Snapshots
from llenvs_aviary.locate import locate
from llenvs_aviary.options import CustomOptions, OpenOptions
from llenvs_aviary.tasks import TaskSource, selected
from llenvs_aviary.upstream import load, versions

Maker = Callable[[int], Any]


class OpenTasks(TaskSource):
    """Tasks that the adapter knows nothing about: `total` of them, `make_one(i)` gives the i-th object."""

    supports_images = True

    def __init__(self, name: str, make_one: Maker, total: int, options: OpenOptions) -> None:
        self._name, self._make_one = name, make_one
        self._order = selected(total, options.size, options.seed)
        self.deterministic = options.deterministic
        if options.success_reward is not None:
            self.success_signal, self.success_threshold = "reward", options.success_reward

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return versions("fhaviary")

    def __len__(self) -> int:
        return len(self._order)

    def make(self, index: int) -> Any:
        """See `TaskSource`.

        Raises:
            UpstreamFailed: what makes the object raised, or made something else.
        """
        doing = f"making the environment object of task {index}"
        try:
            env = self._make_one(self._order[index])
        except LLEnvsError:
            raise
        except Exception as error:
            raise UpstreamFailed(self._name, doing, error) from error
        if not isinstance(env, load().Environment):
            raise UpstreamFailed(self._name, doing, f"it is no aviary Environment but {type(env).__name__}")
        return env


class CustomTasks(OpenTasks):
    """The tasks of the option `env` or `dataset`."""

    def __init__(self, options: CustomOptions) -> None:
        if (options.env is None) == (options.dataset is None):
            raise InvalidOption("env", options.env, "exactly one of env and dataset must be given")
        if options.env is None:
            make_one, total = _of_dataset(options)
        else:
            make_one, total = _of_env(options)
        super().__init__("aviary/custom", make_one, total, options)
        self.branching, self.uses_random = options.branching, options.seed_random
        if options.branching == "replay":
            self.snapshots = Snapshots.NONE


def _of_env(options: CustomOptions) -> tuple[Maker, int]:
    if options.dataset_options is not None:
        raise InvalidOption("dataset_options", options.dataset_options, "belongs to dataset, not to env")
    given = locate("env", options.env) if isinstance(options.env, str) else options.env
    environment = load().Environment
    objects = list(given) if isinstance(given, list | tuple) else [given]
    if objects and all(isinstance(each, environment) for each in objects):
        if options.env_options is not None:
            raise InvalidOption("env_options", options.env_options, "an object that is made already takes none")
        objects = [_copied(each) for each in objects]  # so that nothing done to the given ones shows later
        repeats = (options.size or 1) if len(objects) == 1 else 1
        return lambda index: _copied(objects[index % len(objects)]), len(objects) * repeats
    if not callable(given):
        valid = "an aviary Environment: class, function that makes one, object, or list of objects"
        raise InvalidOption("env", given, "is no environment", valid=valid)
    if isinstance(options.env_options, list):
        keywords: Sequence[Mapping[str, Any]] = options.env_options
        if not keywords:
            raise InvalidOption("env_options", [], "is an empty list, so there is no task")
    else:
        keywords = [options.env_options or {}] * (options.size or 1)
    return lambda index: given(**copy.deepcopy(dict(keywords[index]))), len(keywords)


def _copied(original: Any) -> Any:
    """A fresh object: the upstream would hand out the same one again and again."""
    try:
        return copy.deepcopy(original)
    except Exception as error:
        said = f"the object cannot be copied ({error}); give the class or a function that makes it instead"
        raise InvalidOption("env", original, said) from error


def _of_dataset(options: CustomOptions) -> tuple[Maker, int]:
    if options.env_options is not None:
        raise InvalidOption("env_options", options.env_options, "belongs to env; a dataset takes dataset_options")
    given, keywords = options.dataset, dict(options.dataset_options or {})
    kind = load().TaskDataset
    if isinstance(given, str):
        registered = load().TASK_DATASET_REGISTRY
        if given in registered:
            module, _, name = ":".join(registered[given]).partition(":")
            given = locate("dataset", f"{module}:{name}")
        elif ":" in given:
            given = locate("dataset", given)
        else:
            valid = f'{listed(registered)}, "module:name" or "path/to/file.py:name"'
            raise InvalidOption("dataset", given, "is no data set", valid=valid)
    if not isinstance(given, kind):
        if not callable(given):
            raise InvalidOption(
                "dataset", given, "is no aviary TaskDataset: class, function that makes one, or object"
            )
        try:
            given = given(**keywords)
        except Exception as error:
            raise UpstreamFailed("aviary/custom", "making the data set", error) from error
        if not isinstance(given, kind):
            raise InvalidOption("dataset", given, "made no aviary TaskDataset")
    elif keywords:
        raise InvalidOption("dataset_options", keywords, "an object that is made already takes none")
    return dataset_tasks(given, options.size)


def dataset_tasks(data: Any, size: int | None) -> tuple[Maker, int]:
    """How to make the environments of an upstream's data set, and how many tasks it has.

    Raises:
        InvalidOption: it is endless, and no size is given.
    """
    try:
        total = len(data)
    except TypeError:
        if size is None:
            raise InvalidOption("size", None, "is needed: the data set is endless") from None
        return lambda index: data.get_new_env(), size
    if isinstance(data, load("aviary.env").EnvsTaskDataset):  # which hands out the objects it was given
        return lambda index: _copied(data.get_new_env_by_idx(index)), total
    return data.get_new_env_by_idx, total
