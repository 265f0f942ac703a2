"""What needs no torch: names, options, refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llenvs.core import ToolDefinition
from llenvs.core.errors import InvalidOption, LLEnvsError, UnknownOption
from llenvs.inference import ChatMessage, GenerationRequest, ImageContent, SamplingParams
from llenvs.inference.backends import make_backend
from llenvs.inference.errors import ModelNotFound, UnsupportedFeature
from llenvs_transformers import HuggingFaceBackend
from llenvs_transformers.source import ModelSource, find_source


def test_importing_it_is_cheap() -> None:
    code = (
        f"import sys; sys.path += {[path for path in sys.path if path]!r}\n"
        "import llenvs_transformers\n"
        "print([name for name in ('torch', 'transformers', 'numpy', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_by_name() -> None:
    assert isinstance(make_backend("transformers", model="org/model", max_batch=2), HuggingFaceBackend)
    with pytest.raises(UnknownOption, match="max_batch"):
        make_backend("transformers", max_batches=2)


@pytest.mark.parametrize(
    "options",
    [
        {"n_ctx": 0},
        {"max_batch": True},
        {"threads": -1},
        {"dtype": "float8"},
        {"linger": -1.0},
        {"linger": "x"},
        {"model_options": "x"},
        {"chat_template": 5},
    ],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        HuggingFaceBackend("org/model", **options)  # type: ignore[arg-type]


def test_unknown_parser() -> None:
    with pytest.raises(LLEnvsError, match="hermes"):
        HuggingFaceBackend("org/model", tool_parser="hermess")


def test_sources(tmp_path: Path) -> None:
    assert find_source("org/model") == ModelSource("org/model", None)
    (tmp_path / "config.json").write_text("{}")
    assert find_source(tmp_path) == ModelSource(str(tmp_path), None)
    folder = tmp_path / "of-gguf"
    folder.mkdir()
    (folder / "a.gguf").write_bytes(b"GGUF")
    assert find_source(str(folder)) == find_source(folder / "a.gguf") == ModelSource(str(folder), "a.gguf")
    assert HuggingFaceBackend(folder / "a.gguf").model == "a"
    assert HuggingFaceBackend(tmp_path).model == tmp_path.name
    (folder / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelNotFound, match=r"a\.gguf, b\.gguf"):
        find_source(folder)
    for missing in (tmp_path / "none", "./none", "none.gguf", f"{tmp_path}/none/none"):
        with pytest.raises(ModelNotFound, match="nothing is at"):
            find_source(missing)


def test_sampling_as_in_a_configuration_file() -> None:
    backend = HuggingFaceBackend("org/model", sampling={"temperature": 0, "stop": "x"})
    assert backend._sampling == SamplingParams(temperature=0.0, stop=("x",))
    with pytest.raises(UnknownOption, match="temperature"):
        HuggingFaceBackend("org/model", sampling={"temprature": 0})
    with pytest.raises(InvalidOption, match="top_p"):
        HuggingFaceBackend("org/model", sampling={"top_p": 2})
    with pytest.raises(InvalidOption, match="sampling"):
        HuggingFaceBackend("org/model", sampling="greedy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "feature"),
    [
        ({"json_schema": {"type": "object"}}, "json_schema"),
        ({"grammar": 'root ::= "a"'}, "grammar"),
        ({"sampling": SamplingParams(reasoning_effort="low")}, "reasoning_effort"),
        ({"sampling": SamplingParams(logprobs=2000)}, "logprobs"),
        ({"messages": (ChatMessage.user("x", (ImageContent(data=b"x"),)),)}, "images"),
        ({"tools": (ToolDefinition("add"),), "tool_choice": "required"}, "tool_choice 'required'"),
        ({"tools": (ToolDefinition("add"),), "tool_choice": "add"}, "tool_choice 'add'"),
    ],
)
def test_what_it_cannot_do_is_refused_before_the_model_is_loaded(fields: dict[str, object], feature: str) -> None:
    backend = HuggingFaceBackend("org/model")
    request = GenerationRequest(**{"messages": (ChatMessage.user("x"),), **fields})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeature, match=feature):
        backend.generate_sync(request)
    assert backend._running is None


def test_unknown_extra() -> None:
    with pytest.raises(UnknownOption, match="ignore_eos"):
        HuggingFaceBackend("org/model").chat("x", SamplingParams(extra={"ignore_eoss": True}))


def test_models_that_are_none(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(LLEnvsError, match=str(tmp_path.name)):
        HuggingFaceBackend(tmp_path).chat("x")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF\x03\x00\x00\x00")
    with pytest.raises(LLEnvsError, match=r"broken\.gguf"):
        HuggingFaceBackend(broken).chat("x")


def test_a_longer_context_than_the_model_has(model_folder: Path) -> None:
    with pytest.raises(InvalidOption, match=r"n_ctx.*8192"):
        HuggingFaceBackend(model_folder, device="cpu", n_ctx=9000).chat("x")


def test_devices(model_folder: Path) -> None:
    with pytest.raises(InvalidOption, match="device"):
        HuggingFaceBackend(model_folder, device="gpu7").chat("x")


def test_what_a_cache_tells_answers_apart_by(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = HuggingFaceBackend(tmp_path, n_ctx=512).identity()
    assert HuggingFaceBackend(str(tmp_path), n_ctx=512, max_batch=2).identity() == before
    others = [
        {"n_ctx": 256},
        {"dtype": "float16"},
        {"parse_special": True},
        {"chat_template": "x"},
        {"tool_parser": "mistral"},
        {"sampling": {"top_k": 1}},
    ]
    for other in others:
        assert HuggingFaceBackend(tmp_path, **{"n_ctx": 512, **other}).identity() != before, other
    (tmp_path / "config.json").write_text("{ }")  # a checkpoint that is written over
    assert HuggingFaceBackend(tmp_path, n_ctx=512).identity() != before
