"""The threads of the server, and the states it holds."""

import asyncio
import threading
import time

import pytest

from llenvs import Observation, State
from llenvs.container.errors import RequestTimedOut, ServerBusy
from llenvs.core.errors import EpisodeOver, LLEnvsError
from llenvs_container.state_cache import HeldState, StateCache
from llenvs_container.workers import Workers


async def done_by(workers: Workers, works: list, timeout: float | None = None) -> list:
    """Outcomes of `works`, in their order."""
    futures = []
    for work in works:
        future = asyncio.get_running_loop().create_future()
        workers.submit(work, lambda answer, error, future=future: future.set_result(error or answer), timeout)
        futures.append(future)
    return list(await asyncio.gather(*futures))


def test_short_work_is_done_by_few_threads():
    async def run() -> set[str]:
        workers = Workers(32, 1000, asyncio.get_running_loop())
        names: set[str] = set()

        def work() -> str:
            names.add(threading.current_thread().name)
            return "x"

        for _ in range(100):
            assert await done_by(workers, [work]) == ["x"]
        return names

    assert len(asyncio.run(run())) <= 4


def test_work_that_waits_gets_a_thread_each():
    async def run() -> None:
        workers = Workers(16, 1000, asyncio.get_running_loop())
        barrier = threading.Barrier(16, timeout=30)  # passes when all sixteen run at once

        def work() -> str:
            barrier.wait()
            return "met"

        assert await done_by(workers, [work] * 16) == ["met"] * 16
        assert await done_by(workers, [work] * 32) == ["met"] * 32

    asyncio.run(run())


def test_no_work_is_lost_between_threads_that_fall_asleep():
    async def run() -> int:
        workers = Workers(4, 100_000, asyncio.get_running_loop())
        count = 0
        for i in range(300):
            count += len(await done_by(workers, [lambda: "x"] * (i % 7)))
            if i % 3 == 0:
                await asyncio.sleep(0.0005)
        return count

    assert asyncio.run(asyncio.wait_for(run(), 60)) == sum(i % 7 for i in range(300))


def test_errors_the_bound_of_the_queue_and_time_limits():
    async def run() -> None:
        workers = Workers(1, 2, asyncio.get_running_loop())
        go_on = threading.Event()

        def wait() -> str:
            go_on.wait(30)
            return "waited"

        def fail() -> str:
            raise EpisodeOver("over")

        (error,) = await done_by(workers, [fail])
        assert isinstance(error, EpisodeOver)

        outcomes: list[str | LLEnvsError | None] = []

        def done(answer: str | None, error: LLEnvsError | None) -> None:
            outcomes.append(error or answer)

        workers.submit(wait, done)
        while workers.waiting:
            await asyncio.sleep(0.001)
        began = time.monotonic()
        workers.submit(wait, done, 0.05)
        workers.submit(fail, done)
        with pytest.raises(ServerBusy, match="2 requests are waiting"):
            workers.submit(wait, done)
        while not outcomes:
            await asyncio.sleep(0.001)
        assert isinstance(outcomes[0], RequestTimedOut)
        assert time.monotonic() - began >= 0.05
        go_on.set()
        while len(outcomes) < 3:
            await asyncio.sleep(0.001)
        assert outcomes[1] == "waited"
        assert isinstance(outcomes[2], EpisodeOver)
        await asyncio.sleep(0.02)
        assert len(outcomes) == 3  # what was given up on is not told twice

    asyncio.run(run())


def test_the_cache_is_bounded_in_number_and_bytes():
    def held(size: int) -> HeldState:
        return HeldState(State(Observation(), None), "null", size)

    cache = StateCache(max_states=3, max_bytes=100)
    for key in "abc":
        assert cache.put(key, held(10))
    assert cache.get("a") is not None
    cache.put("d", held(10))
    assert cache.get("b") is None  # the one that was not used for longest
    assert (len(cache), cache.bytes, cache.hits, cache.misses) == (3, 30, 1, 1)
    cache.put("e", held(85))
    assert (len(cache), cache.bytes) == (2, 95)
    cache.put("e", held(20))
    assert cache.bytes == 30
    assert not cache.put("f", held(101))
    assert not StateCache(max_states=0).put("a", held(1))
