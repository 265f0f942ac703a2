"""From a name to an environment object of the upstream."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from llenvs.core.errors import (
    InvalidOption,
    LLEnvsError,
    NotInstalled,
    UnknownEnvironment,
    UnknownOption,
    UpstreamFailed,
)
from llenvs_verifiers.catalogue import BUILT_IN, installed_modules, is_path, module_name, neighbours
from llenvs_verifiers.errors import UnsupportedEnvironment
from llenvs_verifiers.quiet import kept_in

_CLOUD = {"SandboxEnv", "PythonEnv", "CliAgentEnv", "HarborEnv", "OpenCodeEnv"}
_KEY = "OPENAI_API_KEY"


def require_upstream() -> None:
    """Make sure that the classic API can be imported.

    Raises:
        NotInstalled: Verifiers is missing, or is a release without that API.
    """
    if importlib.util.find_spec("verifiers") is None:
        detail = "in an environment without verifiers 0.4"
        if sys.version_info >= (3, 14):
            detail = "with Python 3.11 to 3.13, which it needs; the venv runtime makes such an environment"
        raise NotInstalled("Verifiers", "verifiers", detail)
    if importlib.util.find_spec("verifiers.legacy") is None:
        detail = f"here is verifiers {version('verifiers')}, which has v1 alone; its adapter is verifiers_v1"
        raise NotInstalled("the classic API of Verifiers", "verifiers", detail)


def load(name: str, args: Mapping[str, Any], *, with_judge: bool) -> Any:
    """The environment object that the module `name` makes from `args`.

    Args:
        name: a module, an id such as ``owner/name``, the path of a module, or one of `BUILT_IN`.
        args: arguments of its ``load_environment``.
        with_judge: the judge's model comes from elsewhere, so a key that is missing is not missed.

    Raises:
        UnknownEnvironment: there is no such module.
        UnknownOption, InvalidOption: arguments that do not fit.
        UnsupportedEnvironment: the module is no classic one.
        UpstreamFailed: the module's own code raised.
    """
    require_upstream()
    with kept_in(), _placeholder_key(with_judge):
        make, shown = _maker(name)
        _check_arguments(name, make, args)
        from verifiers.legacy import Environment, MissingKeyError

        try:
            env = make(**args)
        except MissingKeyError as error:
            problem = f"needs environment variables that are not set: {', '.join(error.keys)}"
            raise InvalidOption(f"verifiers/{name}", sorted(args), problem) from None
        except LLEnvsError:
            raise
        except Exception as error:
            raise UpstreamFailed(f"verifiers/{name}", f"calling {shown}", error) from error
        if not isinstance(env, Environment):
            kind = type(env).__name__
            raise UnsupportedEnvironment(name, f"{shown} gave {kind}, which is no verifiers Environment")
        env.env_id = env.env_id or module_name(name)
        env.env_args = env.env_args or dict(args)
        return env


def _maker(name: str) -> tuple[Callable[..., Any], str]:
    """What makes the environment, and how it is called in messages."""
    if name in BUILT_IN:
        import verifiers.legacy as vf

        try:
            return getattr(vf, name), name
        except (AttributeError, ImportError) as error:
            raise InvalidOption(
                f"verifiers/{name}", name, f"needs something that is not installed: {error}"
            ) from None
    try:
        module = _from_file(name) if is_path(name) else _imported(name)
    except LLEnvsError:
        raise
    except Exception as error:
        raise UpstreamFailed(f"verifiers/{name}", "importing its module", error) from error
    make = getattr(module, "load_environment", None)
    if not callable(make):
        reason = "its module has no load_environment; tasksets of v1 are for the adapter verifiers_v1"
        raise UnsupportedEnvironment(name, reason)
    return make, "its load_environment"


def _imported(name: str) -> ModuleType:
    module = module_name(name)
    if not module.isidentifier() or importlib.util.find_spec(module) is None:
        hint = (
            "environments are installed packages: pip install the package, or for the Environments Hub: "
            f"prime env install {name}; a single file can be given by its path, as in verifiers/path/to/module.py"
        )
        raise UnknownEnvironment(name, [*installed_modules(), *BUILT_IN], hint)
    return importlib.import_module(module)


def _from_file(name: str) -> ModuleType:
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        near = [str(Path(name).with_name(f"{each}.py")) for each in neighbours(path.parent)]
        raise UnknownEnvironment(name, near, f"there is no file {path}")
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if known is None:
        sys.modules[path.stem] = module  # as an import would, for what is looked up by its module's name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(path.stem, None)
        raise
    return module


def _check_arguments(name: str, make: Callable[..., Any], args: Mapping[str, Any]) -> None:
    parameters = inspect.signature(make).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    valid = [p.name for p in parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    for given in args:
        if given not in valid and not anything:
            raise UnknownOption(given, valid, f"args of verifiers/{name}")
    for needed in valid:
        if parameters[needed].default is inspect.Parameter.empty and needed not in args:
            raise InvalidOption(f"verifiers/{name}: args.{needed}", None, "is needed")


@contextmanager
def _placeholder_key(wanted: bool) -> Iterator[None]:
    """A key for clients that are made on loading and replaced by the judge's."""
    missing = wanted and not os.environ.get(_KEY)
    if missing:
        os.environ[_KEY] = "unused"
    try:
        yield
    finally:
        if missing:
            del os.environ[_KEY]


def leaves(name: str, env: Any) -> list[Any]:
    """`env` itself, or the environments in it when it is a group; all can be stepped.

    Raises:
        UnsupportedEnvironment: one cannot.
    """
    import verifiers.legacy as vf

    if isinstance(env, vf.EnvGroup):
        return [leaf for each in env.envs for leaf in leaves(name, each)]
    kinds = {cls.__name__ for cls in type(env).__mro__ if cls.__module__.startswith("verifiers.")}
    if kinds & _CLOUD:
        kind = sorted(kinds & _CLOUD)[0]
        raise UnsupportedEnvironment(name, f"it is a {kind}, whose episodes run in the vendor's cloud sandboxes")
    if not isinstance(env, vf.MultiTurnEnv) or type(env).rollout is not vf.MultiTurnEnv.rollout:
        raise UnsupportedEnvironment(
            name, f"its class {type(env).__name__} runs its rollouts in a loop of its own"
        )
    return [env]
