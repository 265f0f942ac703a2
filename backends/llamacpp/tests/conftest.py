from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llenvs_llamacpp import LlamaCppBackend, locate_model


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The default model, from where it is installed or cached, else fetched."""
    return locate_model()


@pytest.fixture(scope="session")
def backend(model_path: Path) -> Iterator[LlamaCppBackend]:
    """One engine for all tests: 4 slots of 2048 tokens."""
    with LlamaCppBackend(model_path, n_ctx=2048, slots=4) as backend:
        yield backend
