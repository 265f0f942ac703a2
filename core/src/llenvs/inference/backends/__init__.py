"""Backends by name, handed on from the distributions that hold them when first asked for."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from llenvs.core.errors import BackendNotInstalled, InvalidOption, LLEnvsError, UnknownBackend, UnknownOption
from llenvs.inference.backends.description import BackendDescription, describe

if TYPE_CHECKING:
    from llenvs.inference.backend import Backend
    from llenvs_anthropic import AnthropicBackend as AnthropicBackend
    from llenvs_llamacpp import LlamaCppBackend as LlamaCppBackend
    from llenvs_openai import OpenAIBackend as OpenAIBackend
    from llenvs_openrouter import OpenRouterBackend as OpenRouterBackend
    from llenvs_transformers import HuggingFaceBackend as HuggingFaceBackend
    from llenvs_vllm import VLLMBackend as VLLMBackend

ENTRY_POINT_GROUP = "llenvs.backends"
SHARED_OPTIONS = ("budget", "cache")
"""Options of every backend (see `Backend.use`), whether or not its class takes them."""

CATALOGUE: dict[str, tuple[str, str]] = {
    "anthropic": ("llenvs_anthropic", "AnthropicBackend"),
    "llamacpp": ("llenvs_llamacpp", "LlamaCppBackend"),
    "openai": ("llenvs_openai", "OpenAIBackend"),
    "openrouter": ("llenvs_openrouter", "OpenRouterBackend"),
    "transformers": ("llenvs_transformers", "HuggingFaceBackend"),
    "vllm": ("llenvs_vllm", "VLLMBackend"),
}
"""Backends of this project: name -> (module, class). The extra of ``llenvs`` has the backend's name."""

_BY_CLASS = {cls: (name, module) for name, (module, cls) in CATALOGUE.items()}

__all__ = [
    *_BY_CLASS,
    "BackendDescription",
    "backend_class",
    "describe_backend",
    "installable_backends",
    "list_backends",
    "make_backend",
]


def __getattr__(attribute: str) -> Any:
    if attribute not in _BY_CLASS:
        raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
    name, module = _BY_CLASS[attribute]
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise BackendNotInstalled(f"backend {name!r}", name) from None


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def list_backends() -> list[str]:
    """Names of the backends that can be used here, sorted."""
    return sorted({*_entry_points(), "scripted"})


def installable_backends() -> dict[str, str]:
    """Backends of this project that are not installed here: name -> install command."""
    here = set(list_backends())
    return {name: BackendNotInstalled(name, name).command for name in CATALOGUE if name not in here}


def backend_class(name: str) -> type[Backend]:
    """The class of the backend `name`, imported now.

    Raises:
        UnknownBackend, BackendNotInstalled: with the nearest names or the install command.
    """
    if name == "scripted":
        from llenvs.inference.scripted import ScriptedBackend

        return ScriptedBackend
    points = _entry_points()
    if name not in points:
        if name in CATALOGUE:
            raise BackendNotInstalled(f"backend {name!r}", name)
        raise UnknownBackend(str(name), sorted({*list_backends(), *CATALOGUE}))
    loaded: type[Backend] = points[name].load()
    return loaded


def describe_backend(name: str) -> BackendDescription:
    """What the backend `name` is and which options it takes. Nothing is connected to or loaded.

    Raises:
        UnknownBackend, BackendNotInstalled: with the nearest names or the install command.
    """
    return describe(name, backend_class(name), SHARED_OPTIONS)


def make_backend(name: str, **options: Any) -> Backend:
    """A backend by name; `options` are the arguments of its class, and those of `Backend.use`.

    Raises:
        UnknownBackend: no such backend.
        BackendNotInstalled: with the install command.
        UnknownOption: with the nearest names.
        InvalidOption: an option is missing or has a wrong value.
        BackendError: what the backend itself says.
    """
    import inspect

    cls = backend_class(name)
    parameters = [p for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
    valid = [p.name for p in parameters]
    shared = {name: options.pop(name) for name in SHARED_OPTIONS if name in options and name not in valid}
    valid += [name for name in SHARED_OPTIONS if name not in valid]
    for option in options:
        if option not in valid:
            raise UnknownOption(option, valid, f"options of backend {name}")
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in options]
    if missing:
        raise InvalidOption(f"model.{missing[0]}", None, f"backend {name} needs it")
    try:
        return cls(**options).use(**shared)
    except LLEnvsError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidOption("model", sorted(options), str(error)) from None  # not the values: one may be a key
