from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from llenvs.testing.replay import ReplayServer
from llenvs_anthropic import AnthropicBackend
from llenvs_llamacpp import LlamaCppBackend

OLDER = "2023-06-01"  # of the API, with temperature


@pytest.fixture(scope="session")
def llamacpp() -> Iterator[LlamaCppBackend]:
    """llama.cpp's own HTTP server, 4 slots of 2048 tokens."""
    with LlamaCppBackend(n_ctx=2048, slots=4) as backend:
        yield backend


@pytest.fixture(scope="session")
def backend(llamacpp: LlamaCppBackend) -> AnthropicBackend:
    return AnthropicBackend(
        llamacpp.model,
        base_url=llamacpp.base_url.removesuffix("/v1"),
        api_key=llamacpp.api_key,
        api_version=OLDER,
    )


@pytest.fixture
def stub() -> Iterator[ReplayServer]:
    """A local server that replays documented answers."""
    with ReplayServer() as server:
        yield server


@pytest.fixture
def message() -> Any:
    """A message as Anthropic documents it."""

    def make(*content: Any, **fields: Any) -> dict[str, Any]:
        blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-m",
            "content": blocks,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 3},
            **fields,
        }

    return make
