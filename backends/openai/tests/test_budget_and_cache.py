"""A budget over attempts and loops, and what a cache tells apart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.inference import Budget, RetryPolicy, SamplingParams
from llenvs.inference.errors import ProviderFailed
from llenvs.testing.replay import ReplayServer, Reply
from llenvs_openai import OpenAIBackend

QUICK = RetryPolicy(attempts=3, min_wait=0.0, max_wait=0.0)
GREEDY = SamplingParams(temperature=0.0)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the budget made somebody wait, who did not."""
    noted: list[float] = []

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr("llenvs.inference.budget.sleep", sleep)
    return noted


def test_every_attempt_is_a_request_of_the_budget(stub: ReplayServer, answer: Any, waits: list[float]) -> None:
    stub.answers(Reply(500, {}), Reply(drop=True), Reply(200, answer()))
    budget = Budget(requests_per_minute=2, clock=lambda: 0.0)
    backend = OpenAIBackend("m", base_url=stub.base_url, retry=QUICK, budget=budget)
    assert backend.chat("hi").text == "ok"
    assert waits == [60.0]
    backend.chat("hi")
    assert waits == [60.0, 60.0]


def test_tokens_are_those_of_the_answers(stub: ReplayServer, answer: Any, waits: list[float]) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 30, "total_tokens": 90}
    stub.answers(Reply(200, answer(usage=usage)))
    budget = Budget(tokens_per_minute=100, clock=lambda: 0.0)
    backend = OpenAIBackend("m", base_url=stub.base_url, budget=budget)
    few = SamplingParams(max_tokens=10)
    for _ in range(3):  # an estimate of 15; in truth 90
        backend.chat("hi", few)
    assert waits == [60.0, 120.0]


def test_failed_requests_cost_no_tokens(stub: ReplayServer, waits: list[float]) -> None:
    stub.answers(Reply(500, {}))
    budget = Budget(tokens_per_minute=20, clock=lambda: 0.0)
    backend = OpenAIBackend("m", base_url=stub.base_url, retry=QUICK, budget=budget)
    with pytest.raises(ProviderFailed):
        backend.chat("hi", SamplingParams(max_tokens=10))
    assert len(stub.received) == 3
    assert waits == []


def test_what_is_found_is_not_sent(stub: ReplayServer, answer: Any, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.5}
    stub.answers(Reply(200, answer(usage=usage)))
    first = OpenAIBackend("m", base_url=stub.base_url, cache=tmp_path)
    fresh = asyncio.run(first.achat("hi", GREEDY))
    found = OpenAIBackend("m", base_url=stub.base_url, cache=tmp_path).chat("hi", GREEDY)
    assert len(stub.received) == 1
    assert (found.text, found.usage.total_tokens) == (fresh.text, 12)
    assert (fresh.usage.cost, found.usage.cost) == (0.5, 0.0)


def test_what_a_cache_tells_apart() -> None:
    def identity(**options: Any) -> Any:
        return OpenAIBackend("m", **{"base_url": "http://a/v1", **options}).identity()

    first = identity()
    for options in (
        {"base_url": "http://b/v1"},
        {"extra_body": {"store": True}},
        {"headers": {"X-Team": "rl"}},
        {"sampling": {"temperature": 0.5}},
        {"parallel_tool_calls": False},
        {"custom_tools": ["run"]},
        {"return_token_ids": True},
    ):
        assert identity(**options) != first
    # who asks, and how patiently, does not matter; and no secret is in it
    assert identity(api_key="secret", timeout=1, retry={"attempts": 1}, max_concurrency=1) == first
    assert "abracadabra" not in str(identity(headers={"Authorization": "Bearer abracadabra"}))


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="budget"):
        OpenAIBackend("m", budget=5)  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOption, match="is a file"):
        OpenAIBackend("m", cache=tmp_path / "file")
