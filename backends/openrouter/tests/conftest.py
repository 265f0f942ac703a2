from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from llenvs.testing.replay import ReplayServer


@pytest.fixture
def stub() -> Iterator[ReplayServer]:
    """A local server that replays documented answers."""
    with ReplayServer() as server:
        yield server


@pytest.fixture
def answer() -> Any:
    """A chat completion as OpenRouter documents it."""

    def make(text: str = "ok", **fields: Any) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None, **fields.pop("message", {})},
            "finish_reason": "stop",
            "native_finish_reason": "end_turn",
            **fields.pop("choice", {}),
        }
        return {
            "id": "gen-1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": "maker/model-2026",
            "provider": "DeepInfra",
            "choices": [choice],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.00014},
            **fields,
        }

    return make
