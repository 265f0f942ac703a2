from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llenvs.testing.replay import ReplayServer, Reply
from llenvs_llamacpp import LlamaCppBackend
from llenvs_openai import OpenAIBackend


@pytest.fixture(scope="session")
def llamacpp() -> Iterator[LlamaCppBackend]:
    """llama.cpp's own HTTP server, 4 slots of 2048 tokens."""
    with LlamaCppBackend(n_ctx=2048, slots=4) as backend:
        yield backend


@pytest.fixture(scope="session")
def backend(llamacpp: LlamaCppBackend) -> OpenAIBackend:
    return OpenAIBackend(llamacpp.model, base_url=llamacpp.base_url, api_key=llamacpp.api_key)


@pytest.fixture
def stub() -> Iterator[ReplayServer]:
    """A local server that replays documented answers."""
    with ReplayServer() as server:
        yield server


def completion(text: str = "ok", **fields: Any) -> dict[str, Any]:
    """A chat completion as OpenAI documents it."""
    message = {"role": "assistant", "content": text, "refusal": None, **fields.pop("message", {})}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "stop",
        "logprobs": None,
        **fields.pop("choice", {}),
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m-2026",
        "choices": [choice],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        **fields,
    }


@pytest.fixture
def answer() -> Callable[..., dict[str, Any]]:
    return completion


@pytest.fixture
def reply() -> type[Reply]:
    return Reply
