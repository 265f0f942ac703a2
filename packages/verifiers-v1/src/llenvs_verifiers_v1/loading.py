"""From a name to an environment object of the upstream and its tasks."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import itertools
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError

from llenvs.core.errors import InvalidOption, LLEnvsError, NotInstalled, UnknownEnvironment, UpstreamFailed
from llenvs.core.math_verify_timeouts import install
from llenvs.core.options import option_error
from llenvs_verifiers_v1.catalogue import installed_tasksets, module_name, split_name
from llenvs_verifiers_v1.errors import UnsupportedEnvironment
from llenvs_verifiers_v1.options import VerifiersV1Options

_lock = threading.RLock()
_NO_LIMIT = 1e9  # seconds: the policy's time is not the environment's, so the upstream's clock of it is off


def require_upstream() -> None:
    """Make sure that v1 can be imported.

    Raises:
        NotInstalled: Verifiers is missing, or is a release of the classic API.
    """
    if importlib.util.find_spec("verifiers") is None:
        raise NotInstalled("Verifiers v1", "verifiers-v1", "in an environment without verifiers 0.3")
    here = version("verifiers")
    if not here.startswith("0.4."):
        detail = f"here is verifiers {here}, whose v1 differs; the adapter for its classic API is verifiers"
        raise NotInstalled("Verifiers 0.4", "verifiers-v1", detail)


@contextlib.contextmanager
def kept_in() -> Iterator[None]:
    """Within it the upstream and modules of its may be imported: what they print goes to standard error."""
    with _lock, contextlib.redirect_stdout(sys.stderr):
        yield


@dataclass(frozen=True, slots=True)
class Loaded:
    """An environment of the upstream, its tasks, its seats, and those seats that have an endpoint of their own."""

    env: Any
    tasks: tuple[Any, ...]
    seats: tuple[str, ...]
    own_endpoint: tuple[str, ...]


def load(name: str, options: VerifiersV1Options) -> Loaded:
    """The environment ``taskset`` or ``env+taskset``.

    Raises:
        UnknownEnvironment: there is no such taskset (or environment).
        UnknownOption, InvalidOption: parameters that its configuration does not take.
        UnsupportedEnvironment: it needs what cannot be stepped here.
        UpstreamFailed: its own code raised.
    """
    require_upstream()
    env_id, taskset_id = split_name(name)
    with kept_in():
        from verifiers.v1.utils import loaders

        from llenvs_verifiers_v1.relay import ID, register

        register()
        install()
        for kind, id in (("taskset", taskset_id), ("environment", env_id)):
            if id:
                _check_plugin(name, kind, id)
        cls = loaders.env_config_type(taskset_id, env_id)
        seats = _seats_of(cls)
        data = _config(name, options, env_id, taskset_id, seats, ID)
        try:
            config = cls.model_validate(data)
        except ValidationError as error:
            raise option_error(error, cls, f"verifiers_v1/{name}") from None
        if options.harness == "auto":
            _check_harness(name, taskset_id, config, seats, ID)
        try:
            env = loaders.load_environment(config)
            tasks = _tasks(name, env, options)
        except LLEnvsError:
            raise
        except Exception as error:
            raise UpstreamFailed(f"verifiers_v1/{name}", "loading it", error) from error
        _check_tasks(name, config, seats, tasks)
        _check_toolsets(name, env, tasks)
    own = tuple(seat for seat in seats if getattr(config, seat).client is not None)
    return Loaded(env, tasks, seats, own)


def _check_plugin(name: str, kind: str, id: str) -> None:
    from verifiers.v1.utils import loaders

    find = loaders.taskset_class if kind == "taskset" else (lambda each: loaders.environment_class("", each))
    try:
        find(id)
    except ModuleNotFoundError as error:
        module = module_name(id)
        if error.name not in (None, module):
            raise UpstreamFailed(f"verifiers_v1/{name}", f"importing the {kind} {id!r}", error) from error
        hint = (
            "tasksets are installed packages: pip install the package, or for the Environments Hub: "
            f"prime env install {id}; a single file is found when its folder is in PYTHONPATH"
        )
        prefix = name[: -len(id)] if name.endswith(id) else ""
        valid = [prefix + each for each in installed_tasksets()] if kind == "taskset" else _environments()
        raise UnknownEnvironment(name if kind == "taskset" else id, valid, hint) from None
    except (AttributeError, TypeError, ValueError) as error:
        classic = hasattr(sys.modules.get(module_name(id)), "load_environment")
        reason = "it is a module of the classic API, for the adapter verifiers" if classic else str(error)
        raise UnsupportedEnvironment(name, reason) from None
    except Exception as error:
        raise UpstreamFailed(f"verifiers_v1/{name}", f"importing the {kind} {id!r}", error) from error


def _environments() -> list[str]:
    import pkgutil

    from verifiers.v1 import envs

    return sorted(module.name for module in pkgutil.iter_modules(envs.__path__))


def _seats_of(cls: type[Any]) -> tuple[str, ...]:
    from verifiers.v1.configs.agent import AgentConfig

    return tuple(name for name, field in cls.model_fields.items() if isinstance(field.default, AgentConfig))


def _config(
    name: str, options: VerifiersV1Options, env_id: str, taskset_id: str, seats: Sequence[str], harness: str
) -> dict[str, Any]:
    """The configuration as data: ours for each seat, the user's over it."""
    given = dict(options.env_params)
    for reserved in ("id", "taskset"):
        if reserved in given:
            problem = "comes from the name" if reserved == "id" else "has an option of its own, taskset_params"
            raise InvalidOption(f"verifiers_v1/{name}: env_params.{reserved}", given[reserved], problem)
    taskset = {**options.taskset_params, "id": taskset_id}
    if options.task_params:
        taskset["task"] = {**dict(taskset.get("task") or {}), **options.task_params}
    data: dict[str, Any] = {**given, "id": env_id, "taskset": taskset}
    policy = options.seat if options.seat in seats else seats[0]
    for seat in seats:
        own = dict(given.get(seat) or {})
        ours: dict[str, Any] = {
            "harness": {"id": harness},
            "runtime": {"type": "subprocess"},
            "timeout": {"rollout": _NO_LIMIT},
        }
        if options.max_steps is not None and seat == policy:
            ours["max_turns"] = options.max_steps
        data[seat] = {**ours, **own}
    return data


def _check_harness(name: str, taskset_id: str, config: Any, seats: Sequence[str], ours: str) -> None:
    from verifiers.v1.utils.loaders import default_harness_id

    brought = default_harness_id(taskset_id)
    if brought == taskset_id and any(getattr(config, seat).harness.id == ours for seat in seats):
        reason = (
            "it brings a harness of its own, whose program calls the model as it likes; harness='relay' plays it "
            "with a plain chat loop instead"
        )
        raise UnsupportedEnvironment(name, reason)


def _tasks(name: str, env: Any, options: VerifiersV1Options) -> tuple[Any, ...]:
    taskset = env.taskset
    if not taskset.bounded:
        if options.size is None:
            raise InvalidOption(f"verifiers_v1/{name}: size", None, "is needed: the taskset is infinite")
        taskset = taskset.take(options.size)
    if options.seed is not None:
        taskset = taskset.shuffle(options.seed)
    return tuple(itertools.islice(taskset, options.size))


def _check_tasks(name: str, config: Any, seats: Sequence[str], tasks: Sequence[Any]) -> None:
    local = all(getattr(config, seat).runtime.type == "subprocess" for seat in seats)
    for task in tasks if local else ():
        if type(task).NEEDS_CONTAINER or task.data.image is not None:
            reason = (
                "its tasks run in containers; give the seats a runtime with containers, as in "
                f"env_params={{{seats[0]}: {{runtime: {{type: docker}}}}}}"
            )
            raise UnsupportedEnvironment(name, reason)


def _check_toolsets(name: str, env: Any, tasks: Sequence[Any]) -> None:
    """Tool servers are started as ``python -m module`` in a process of their own; when that fails the upstream
    notices after three minutes."""
    toolsets = list(env.taskset.toolsets(env.taskset.config))
    if tasks:
        toolsets += type(tasks[0]).toolsets(tasks[0].config)
    modules = {type(each).__module__ for each in toolsets if not getattr(each.config, "url", None)}
    for module in sorted(modules):
        source = inspect.getsource(sys.modules[module]) if module in sys.modules else ""
        if "__main__" not in source:
            reason = (
                f"the module {module} of its tools cannot be run: it lacks `if __name__ == '__main__': ...run()`"
            )
            raise UnsupportedEnvironment(name, reason)
        with tempfile.TemporaryDirectory() as elsewhere:
            find = (
                f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module.split('.')[0]!r}) is None)"
            )
            found = subprocess.run([sys.executable, "-c", find], cwd=elsewhere, capture_output=True, check=False)
        if found.returncode:
            reason = (
                f"the module {module} of its tools is not found by another Python process; install it, or put its "
                "folder, as an absolute path, into PYTHONPATH before Python starts"
            )
            raise UnsupportedEnvironment(name, reason)


def has_judges(tasks: Sequence[Any]) -> bool:
    """Whether models judge the tasks by configuration."""
    return bool(tasks) and bool(tasks[0].config.judges)
