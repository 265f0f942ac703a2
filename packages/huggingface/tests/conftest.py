"""Rows from LLENVS_HUGGINGFACE_DATA, or from the folder `shared` beside the checkout; temporary caches."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `hub_layout`

# The libraries read these when they are first imported, which no test does before this line.
_HOME = tempfile.mkdtemp(prefix="llenvs-huggingface-tests-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["HF_HOME"] = _HOME
for _name in (
    "HF_HUB_CACHE",
    "HF_DATASETS_CACHE",
    "HF_HUB_OFFLINE",
    "HF_DATASETS_OFFLINE",
    "TRANSFORMERS_OFFLINE",
):
    os.environ.pop(_name, None)

from hub_layout import write_repository  # noqa: E402

import llenvs  # noqa: E402
from llenvs_huggingface.environment import HuggingFaceEnvironment  # noqa: E402
from llenvs_huggingface.scoring.verifiers import VERIFIERS  # noqa: E402

_BESIDE = Path(__file__).parents[4] / "shared" / "data" / "huggingface"


@pytest.fixture(scope="session", autouse=True)
def _one_math_worker() -> Iterator[None]:
    """Keep the worker between tests: starting it takes seconds."""
    VERIFIERS.acquire()
    yield
    VERIFIERS.release()


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(os.environ.get("LLENVS_HUGGINGFACE_DATA") or _BESIDE)
    if not (folder / "gsm8k_main_test.jsonl").is_file():
        pytest.skip("no rows here: name their folder with LLENVS_HUGGINGFACE_DATA")
    return folder


@pytest.fixture(scope="session")
def rows(data: Path) -> Callable[[str], list[dict[str, Any]]]:
    """The rows of a file, by its name without ``.jsonl``."""
    return lambda name: [json.loads(line) for line in (data / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def make(data: Path) -> Iterator[Callable[..., HuggingFaceEnvironment]]:
    """Makes environments over the rows of a file, and closes them."""
    made: list[HuggingFaceEnvironment] = []

    def make(name: str, file: str | None = None, **options: Any) -> HuggingFaceEnvironment:
        if file is not None:
            options["data_files"] = str(data / f"{file}.jsonl")
        env = llenvs.make(f"huggingface/{name}", **options)
        assert isinstance(env, HuggingFaceEnvironment)
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


@pytest.fixture
def gsm8k_cache(tmp_path: Path, rows: Callable[[str], list[dict[str, Any]]]) -> Path:
    """A folder laid out as the hub's cache, with openai/gsm8k in it."""
    cache = tmp_path / "hub"
    splits = {"train": rows("gsm8k_main_train"), "test": rows("gsm8k_main_test")}
    write_repository(cache, "openai/gsm8k", {"main": splits})
    return cache


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Blocks sockets of this process; gives the list of attempts."""
    attempts: list[str] = []

    def refuse(*args: Any, **_: Any) -> Any:
        attempts.append(repr(args))
        raise OSError("the network is blocked")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    return attempts
