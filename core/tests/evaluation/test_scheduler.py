from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from llenvs.evaluation.scheduler import run_bounded


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    return run


async def collect(outcomes: AsyncIterator[int], into: list[int]) -> None:
    async for outcome in outcomes:
        into.append(outcome)


@in_loop
async def test_every_outcome_comes_once() -> None:
    async def double(job: int) -> int:
        await asyncio.sleep(0)
        return 2 * job

    outcomes = [outcome async for outcome in run_bounded(range(100), double, 7)]
    assert sorted(outcomes) == [2 * job for job in range(100)]


@in_loop
async def test_at_most_limit_run_and_jobs_are_drawn_as_there_is_room() -> None:
    drawn, running, most, taken, furthest = 0, 0, 0, 0, 0

    def jobs() -> Iterator[int]:
        nonlocal drawn
        for job in range(1000):
            drawn += 1
            yield job

    async def run(job: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return job

    async for _ in run_bounded(jobs(), run, 5):
        taken += 1
        furthest = max(furthest, drawn - taken)
        for _ in range(20):  # a slow consumer
            await asyncio.sleep(0)
    assert (taken, most) == (1000, 5)
    assert furthest <= 10
    assert len(asyncio.all_tasks()) == 1


@in_loop
async def test_no_job_waits_for_a_slow_one_beside_it() -> None:
    # The first job ends only when the last one has run: in batches of two it never would.
    last = asyncio.Event()

    async def run(job: int) -> int:
        if job == 0:
            await last.wait()
        if job == 50:
            last.set()
        return job

    async with asyncio.timeout(20):
        outcomes = [outcome async for outcome in run_bounded(range(51), run, 2)]
    assert sorted(outcomes) == list(range(51))


@in_loop
async def test_a_consumer_that_is_away_does_not_stop_the_next_job_from_beginning() -> None:
    begun: list[int] = []

    async def run(job: int) -> int:
        begun.append(job)
        return job

    async with aclosing(run_bounded(range(100), run, 4)) as outcomes:
        await anext(outcomes)
        for _ in range(50):
            await asyncio.sleep(0)
        assert 4 < len(begun) <= 9


@in_loop
async def test_leaving_early_leaves_no_task() -> None:
    cancelled = 0

    async def run(job: int) -> int:
        nonlocal cancelled
        try:
            await asyncio.sleep(0 if job == 0 else 3600)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return job

    async with aclosing(run_bounded(range(100), run, 8)) as outcomes:
        assert await anext(outcomes) == 0
    assert cancelled in (7, 8)  # the eighth may not have come to its first line
    assert len(asyncio.all_tasks()) == 1


@in_loop
async def test_an_exception_is_raised_and_nothing_begins_after_it() -> None:
    begun: list[int] = []

    async def run(job: int) -> int:
        begun.append(job)
        await asyncio.sleep(0)
        if job == 3:
            raise LookupError("three")
        await asyncio.sleep(3600)
        return job

    with pytest.raises(LookupError, match="three"):
        await collect(run_bounded(range(100), run, 4), [])
    assert begun == [0, 1, 2, 3]
    assert len(asyncio.all_tasks()) == 1


@in_loop
async def test_an_exception_while_drawing_comes_after_the_outcomes() -> None:
    def jobs() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError("no more")

    async def run(job: int) -> int:
        await asyncio.sleep(0)
        return job

    seen: list[int] = []
    with pytest.raises(LookupError, match="no more"):
        await collect(run_bounded(jobs(), run, 4), seen)
    assert sorted(seen) == [1, 2]


@in_loop
async def test_no_jobs_and_no_room() -> None:
    async def run(job: int) -> int:
        return job

    assert [outcome async for outcome in run_bounded([], run, 4)] == []
    with pytest.raises(ValueError, match="limit"):
        await anext(run_bounded([1], run, 0))
