from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llenvs.inference.local.model_file import cache_folder
from llenvs_transformers import HuggingFaceBackend

pytest.register_assert_rewrite("llenvs.testing.chat_engine")  # its tests are run here

TESTS = Path(__file__).parent


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The default model as a folder in bfloat16, made once and kept in the user's cache."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = cache_folder() / "SmolLM2-135M-Instruct-bf16"
    if not folder.is_dir():
        subprocess.run([sys.executable, str(TESTS / "gguf_to_folder.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="session")
def backend(model_folder: Path) -> Iterator[HuggingFaceBackend]:
    """One model for all tests: float32, one thread."""
    with HuggingFaceBackend(model_folder, device="cpu", dtype="float32", threads=1) as backend:
        yield backend
