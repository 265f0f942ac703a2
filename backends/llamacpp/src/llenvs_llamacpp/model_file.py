"""Which model file to load; the search is the same for every engine that reads GGUF files."""

from __future__ import annotations

import os
from pathlib import Path

from llenvs.inference.local.model_file import locate_model as _locate_model
from llenvs_llamacpp.client import NAME


def locate_model(model: str | os.PathLike[str] | None = None) -> Path:
    """The file to load: see `llenvs.inference.local.model_file.locate_model`."""
    return _locate_model(model, NAME)
