from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llenvs.inference.local.model_file import cache_folder
from llenvs_vllm import VLLMBackend

pytest.register_assert_rewrite("llenvs.testing.chat_engine")  # its tests are run here

SHARED_TESTS = Path(__file__).parents[2] / "transformers" / "tests"
ENGINE = {"enforce_eager": True, "max_num_seqs": 16}


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The default model as a folder in bfloat16, made once and kept in the user's cache."""
    pytest.importorskip("vllm", reason="vLLM is not installed", exc_type=ImportError)
    folder = cache_folder() / "SmolLM2-135M-Instruct-bf16"
    if not folder.is_dir():
        subprocess.run([sys.executable, str(SHARED_TESTS / "gguf_to_folder.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="session")
def template() -> str:
    """A chat template that knows tools."""
    return (SHARED_TESTS / "chatml_tools.jinja").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def backend(model_folder: Path) -> Iterator[VLLMBackend]:
    """One engine for all tests, in float32: starting it takes a minute."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    with VLLMBackend(model_folder, dtype="float32", n_ctx=1024, engine=ENGINE) as backend:
        yield backend
