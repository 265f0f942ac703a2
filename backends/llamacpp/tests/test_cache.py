"""Answers of the real engine, kept and found again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from llenvs.inference import ChatMessage, GenerationRequest, SamplingParams
from llenvs_llamacpp import LlamaCppBackend

GREEDY = SamplingParams(temperature=0.0, max_tokens=8, logprobs=2)
REQUEST = GenerationRequest((ChatMessage.user("What is the capital of France?"),), GREEDY)


def test_what_was_kept_needs_no_engine(tmp_path: Path, model_path: Path) -> None:
    with LlamaCppBackend(model_path, n_ctx=512, slots=1, cache=tmp_path) as backend:
        fresh = backend.generate_sync(REQUEST)
    again = LlamaCppBackend(model_path, n_ctx=512, slots=1, cache=tmp_path)
    found = again.generate_sync(REQUEST)
    assert again._running is None
    assert (found.text, found.completion_token_ids, found.logprobs) == (
        fresh.text,
        fresh.completion_token_ids,
        fresh.logprobs,
    )
    assert found.metadata["from_cache"] is True


def test_another_model_or_option_is_another_key(tmp_path: Path, model_path: Path) -> None:
    copy = tmp_path / model_path.name
    shutil.copyfile(model_path, copy)
    first = LlamaCppBackend(copy).identity()
    assert LlamaCppBackend(copy).identity() == first
    for options in (
        {"n_ctx": 512},
        {"chat_template": "chatml_tools"},
        {"tool_parser": "mistral"},
        {"parse_special": True},
        {"engine": {"rope_freq_scale": 0.5}},
        {"sampling": {"top_k": 1}},
    ):
        assert LlamaCppBackend(copy, **options).identity() != first
    os.utime(copy, ns=(1, 1))  # written anew
    assert LlamaCppBackend(copy).identity() != first


def test_a_budget_holds_requests_back(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("llenvs.inference.budget.sleep", sleep)
    one = SamplingParams(temperature=0.0, max_tokens=1)
    with LlamaCppBackend(model_path, n_ctx=256, slots=2, budget={"requests_per_minute": 2}) as backend:
        answers = backend.chat_batch(["hi"] * 5, one)
    assert len({each.text for each in answers}) == 1
    assert [round(wait / 60) for wait in waits] == [1, 1, 2]
