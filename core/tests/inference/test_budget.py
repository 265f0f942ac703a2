"""Requests and tokens per minute, with a minute that is shorter or a clock that is ours."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.inference import (
    Backend,
    ChatMessage,
    Generation,
    GenerationRequest,
    SamplingParams,
    ScriptedBackend,
    Usage,
)
from llenvs.inference import budget as module
from llenvs.inference.backends import make_backend
from llenvs.inference.budget import Budget


def asked(text: str = "hi", **sampling: Any) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), SamplingParams.model_validate(sampling))


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(module, "sleep", self.sleep)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Starts:
    """A clock that stands still; notes when those who wait will start, in seconds from now."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits: list[float] = []
        monkeypatch.setattr(module, "sleep", self.sleep)

    def __call__(self) -> float:
        return 1000.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_requests_in_any_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(requests_per_minute=3, clock=clock)
    starts = []

    async def eight() -> None:
        for number in range(8):
            async with budget.spend(asked()):
                starts.append(clock.now - 1000.0)
            if number == 1:
                clock.now += 10.0

    asyncio.run(eight())
    # two at 0, one at 10; each further one as soon as the one three before it is a minute old
    assert starts == [0.0, 0.0, 10.0, 60.0, 60.0, 70.0, 120.0, 120.0]


def test_tokens_are_put_right_by_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(tokens_per_minute=1000, clock=clock)

    async def spend(used: int | None) -> float:
        async with budget.spend(asked("x" * 350, max_tokens=96)) as spending:
            if used is not None:
                spending.answered([Generation(usage=Usage(prompt_tokens=used))])
        return clock.now - 1000.0

    async def act() -> list[float]:
        # an estimate of 100 + 4 + 96 = 200; the first cost 700 in truth: 200 fit, once more they do not
        return [await spend(700), await spend(None), await spend(300), await spend(10), await spend(10)]

    assert budget.estimate(asked("x" * 350, max_tokens=96)) == 200
    # the failed one (None) cost nothing
    assert asyncio.run(act()) == [0.0, 0.0, 0.0, 60.0, 60.0]


def test_a_request_larger_than_a_minute_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(tokens_per_minute=100, clock=clock)
    starts = []

    async def act() -> None:
        for length in (70, 7000, 70):
            async with budget.spend(asked("x" * length, max_tokens=1)) as spending:
                starts.append(clock.now - 1000.0)
                spending.answered([])  # no usage told: the estimate stays

    asyncio.run(act())
    assert starts == [0.0, 60.0, 120.0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 40), st.integers(0, 120), st.integers(0, 150)), min_size=1, max_size=40),
    st.integers(1, 5),
    st.integers(50, 200),
)
def test_no_minute_has_more(requests: list[tuple[float, int, int]], most: int, tokens: int) -> None:
    clock_now = [0.0]
    budget = Budget(most, tokens, clock=lambda: clock_now[0])
    sent: list[tuple[float, int]] = []
    for pause, estimate, used in requests:
        clock_now[0] += pause
        start, spending = budget._reserve(estimate)
        assert start >= clock_now[0]
        clock_now[0] = start
        spending.tokens.change(used)
        sent.append((start, used))
    for start, _ in sent:
        window = [used for at, used in sent if start - 60.0 + 1e-6 < at <= start]  # (rounding)
        assert len(window) <= most
        # what was known when the last one of the window started, its own estimate aside, fits
        assert sum(window[:-1]) <= tokens or len(window) == 1 or max(window[:-1]) > tokens - sum(window[:-2])


def test_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch)
    backend = ScriptedBackend("ok").use(budget=Budget(10, clock=starts))

    async def forty() -> None:
        await asyncio.gather(*(backend.generate(asked()) for _ in range(40)))

    asyncio.run(forty())
    assert starts.waits == [60.0] * 10 + [120.0] * 10 + [180.0] * 10


def test_one_budget_over_backends_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch)
    budget = Budget(requests_per_minute=5, clock=starts)
    backends = [ScriptedBackend("ok").use(budget=budget) for _ in range(4)]

    def four(backend: Backend) -> None:
        for _ in range(4):
            asyncio.run(backend.generate(asked()))

    threads = [threading.Thread(target=four, args=(each,)) for each in backends]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(starts.waits) == [60.0] * 5 + [120.0] * 5 + [180.0]


def test_who_gives_up_waiting_costs_nothing() -> None:
    budget = Budget(requests_per_minute=1, tokens_per_minute=1_000_000, clock=lambda: 1000.0)
    backend = ScriptedBackend("ok").use(budget=budget)

    async def act() -> None:
        await backend.generate(asked())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(backend.generate(asked()), 0.02)

    asyncio.run(act())
    # the next one takes the place of the one that gave up
    assert budget._reserve(10)[0] == 1060.0
    assert budget._reserve(10)[0] == 1120.0


def test_made_from_a_configuration() -> None:
    backend = make_backend("scripted", script="ok", budget={"tokens_per_minute": 1000})
    assert isinstance(backend, ScriptedBackend)
    assert backend.budget is not None
    assert backend.budget.tokens_per_minute == 1000
    assert backend.chat("hi").text == "ok"
    with pytest.raises(UnknownOption, match="did you mean 'requests_per_minute'"):
        make_backend("scripted", budget={"request_per_minute": 1})
    with pytest.raises(InvalidOption, match=r"budget\.tokens_per_minute"):
        make_backend("scripted", budget={"tokens_per_minute": 0})
    with pytest.raises(InvalidOption, match="must be a Budget or its fields"):
        make_backend("scripted", budget=7)
