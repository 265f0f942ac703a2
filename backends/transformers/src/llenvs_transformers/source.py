"""Where a model comes from: a folder, a GGUF file, or a name on the Hugging Face hub."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from llenvs.inference.errors import ModelNotFound
from llenvs.inference.local.model_file import DEFAULT_MODEL, locate_model, named_model

NAME = "transformers"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What ``from_pretrained`` is given.

    Attributes:
        location: a folder, or a name on the hub.
        gguf_file: the file in that folder that holds everything, or None.
    """

    location: str
    gguf_file: str | None


def find_source(model: str | os.PathLike[str] | None) -> ModelSource:
    """Where to load `model` from. None: the default model (see `llenvs.inference.local.model_file`).

    Raises:
        ModelNotFound: a path where nothing is, or something that is no model.
    """
    path = named_model(model)
    if path is None:
        return _gguf(locate_model(None, NAME))
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        if path.suffix.lower() == ".gguf":
            return _gguf(path)
        raise ModelNotFound(NAME, f"{path} is neither a folder with a config.json nor a .gguf file")
    if _is_meant_as_a_path(model, path):
        raise ModelNotFound(
            NAME, f"nothing is at {str(path)!r}; give a folder, a .gguf file, or a name on the Hugging Face hub"
        )
    return ModelSource(str(path), None)


def model_label(model: str | os.PathLike[str] | None) -> str:
    """The model's name in results: as on the hub, or that of the folder or file."""
    path = named_model(model)
    if path is None:
        return Path(DEFAULT_MODEL.filename).stem
    if path.suffix.lower() == ".gguf":
        return path.stem
    return path.name if path.exists() or _is_meant_as_a_path(model, path) else str(path)


def _folder(path: Path) -> ModelSource:
    if (path / "config.json").is_file():
        return ModelSource(str(path), None)
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return _gguf(files[0])
    hint = f"; name one of {', '.join(file.name for file in files)}" if files else ""
    raise ModelNotFound(NAME, f"the folder {path} holds neither a config.json nor one .gguf file{hint}")


def _gguf(path: Path) -> ModelSource:
    return ModelSource(str(path.parent), path.name)


def _is_meant_as_a_path(model: str | os.PathLike[str] | None, path: Path) -> bool:
    """Whether it cannot be a name on the hub: those are ``name`` or ``owner/name``."""
    if not isinstance(model, str) or model.startswith((".", "~", os.sep)):
        return True
    return path.suffix.lower() == ".gguf" or model.count("/") > 1
