"""The table of backends: it says what they say, what it denies is refused, what it affirms is tested."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from llenvs.core.tools import ToolDefinition
from llenvs.inference import Backend, ChatMessage, GenerationRequest, ImageContent, SamplingParams
from llenvs.inference.backends import CATALOGUE
from llenvs.inference.errors import UnsupportedFeature
from llenvs.testing.chat_engine import ChatEngineAnswers

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/backends/index.md").read_text(encoding="utf-8")

# row of the table -> (field of Capabilities, a request that needs it)
FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "n samples in one request": ("native_n", {}),
    "stop strings": ("stop", {"stop": ("a",)}),
    "seed": ("seed", {"seed": 1}),
    "temperature": ("temperature", {"temperature": 0.5}),
    "top_p": ("top_p", {"top_p": 0.5}),
    "top_k": ("top_k", {"top_k": 5}),
    "min_p": ("min_p", {"min_p": 0.5}),
    "penalties": ("penalties", {"presence_penalty": 0.5}),
    "logprobs": ("logprobs", {"logprobs": 0}),
    "token ids": ("token_ids", {}),
    "assistant prefix": ("prefix", {"prefix": "The"}),
    "tools": ("tools", {"tools": (ToolDefinition("f"),)}),
    "demanded tool choice": ("", {"tools": (ToolDefinition("f"),), "tool_choice": "required"}),
    "images": ("images", {"images": (ImageContent(data=b"a"),)}),
    "JSON Schema": ("json_schema", {"json_schema": {"type": "integer"}}),
    "grammar (GBNF)": ("grammar", {"grammar": 'root ::= "a"'}),
    "reasoning effort": ("reasoning_effort", {"reasoning_effort": "low"}),
}
NOWHERE = "http://127.0.0.1:9/v1"
OPTIONS: dict[str, dict[str, Any]] = {
    "openai": {"model": "m", "base_url": NOWHERE, "return_token_ids": True},
    "anthropic": {"model": "m", "base_url": NOWHERE, "api_version": "2023-06-01"},
    "openrouter": {"model": "m", "base_url": NOWHERE, "provider": {"only": ["a"]}},
    "llamacpp": {},
    "transformers": {"model": "org/model"},
    "vllm": {"model": "org/model"},
}


def _rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]


HEAD, _, *ROWS = _rows(TEXT[: TEXT.index("\n1. ")])
COLUMNS = [re.search(r"\((\w+)\.md\)", cell)[1] for cell in HEAD[1:]]  # type: ignore[index]
TABLE = {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in ROWS}


def test_every_backend_and_feature_is_there() -> None:
    assert sorted(COLUMNS) == sorted(CATALOGUE)
    assert list(TABLE) == list(FEATURES)


@pytest.fixture
def backend(name: str, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """Made without its engine or SDK, which nothing here needs; so it need not be installed."""
    module, cls = CATALOGUE[name]
    monkeypatch.syspath_prepend(ROOT / "backends" / name / "src")
    made: Backend = getattr(importlib.import_module(module), cls)(**OPTIONS[name])
    return made


@pytest.mark.parametrize("name", COLUMNS)
def test_the_table_says_what_the_backend_says(name: str, backend: Backend) -> None:
    capabilities = backend.capabilities
    for feature, (field, _) in FEATURES.items():
        if field:
            assert TABLE[feature][name].startswith("yes") == getattr(capabilities, field), feature


@pytest.mark.parametrize("name", COLUMNS)
def test_what_it_denies_is_refused_before_anything_is_sent(name: str, backend: Backend) -> None:
    for feature, (_, needs) in FEATURES.items():
        if TABLE[feature][name].startswith("yes") or not needs:
            continue
        needs = dict(needs)
        sampling = {key: needs.pop(key) for key in list(needs) if key in SamplingParams.model_fields}
        message = ChatMessage.user("hi", needs.pop("images", ()))
        request = GenerationRequest((message,), SamplingParams.model_validate(sampling), **needs)
        with pytest.raises(UnsupportedFeature):
            backend.generate_sync(request)


@pytest.mark.parametrize("name", COLUMNS)
def test_what_it_affirms_has_a_test(name: str) -> None:
    section = TEXT[TEXT.index(f"### {name}\n") :]
    section = section[: section.find("\n### ", 1)]
    evidence = {row[0]: row[1] for row in _rows(section)[2:]}
    assert list(evidence) == [feature for feature in TABLE if TABLE[feature][name].startswith("yes")]
    for feature, named in evidence.items():
        if named.startswith("not run here: "):
            continue
        file, *shared, test = named.strip("`").split("::")
        source = (ROOT / "backends" / name / "tests" / file).read_text(encoding="utf-8")
        if shared:  # a class of tests that backends of a kind have in common
            assert f"\nclass {shared[0]}(ChatEngineAnswers)" in source, f"{feature}: {named}"
            assert callable(getattr(ChatEngineAnswers, test, None)), f"{feature}: {named}"
        else:
            assert f"\ndef {test}(" in source, f"{feature}: {named}"
