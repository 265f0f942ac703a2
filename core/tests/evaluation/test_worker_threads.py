from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from llenvs.evaluation.worker_threads import WorkerThreads

NAME = "test-worker"


def running(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_values_and_errors_come_back() -> None:
    async def calls() -> list[Any]:
        workers = WorkerThreads(4, NAME)
        jobs = [workers.call(lambda i=i: 1 // (i - 3)) for i in range(6)]  # type: ignore[misc]
        return await asyncio.gather(*jobs, return_exceptions=True)

    *values, error, four, five = asyncio.run(calls())
    assert values == [-1, -1, -1]
    assert isinstance(error, ZeroDivisionError)
    assert (four, five) == (1, 0)


def test_as_many_threads_as_are_needed_up_to_the_limit() -> None:
    async def calls() -> tuple[int, int]:
        workers = WorkerThreads(3, "test-limit")
        before = len(running("test-limit"))
        # 30 calls that need three threads at once, and would hang on fewer
        together = threading.Barrier(3, timeout=30)
        await asyncio.gather(*(workers.call(together.wait) for _ in range(30)))
        return before, len(running("test-limit"))

    assert asyncio.run(calls()) == (0, 3)


def test_threads_end_with_their_owner() -> None:
    async def calls() -> list[threading.Thread]:
        workers = WorkerThreads(3, "test-gone")
        together = threading.Barrier(3, timeout=30)
        await asyncio.gather(*(workers.call(together.wait) for _ in range(3)))
        return running("test-gone")

    threads = asyncio.run(calls())
    gc.collect()
    for thread in threads:
        thread.join(timeout=30)
    assert len(threads) == 3
    assert not any(thread.is_alive() for thread in threads)


def test_context_variables_are_those_of_the_caller() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    async def call() -> int:
        variable.set(7)
        return await WorkerThreads(1, NAME).call(variable.get)

    assert asyncio.run(call()) == 7


def test_a_cancelled_call_that_has_not_begun_is_dropped() -> None:
    made = []

    async def calls() -> None:
        workers = WorkerThreads(1, NAME)
        begun, release = threading.Event(), threading.Event()

        def first() -> None:
            begun.set()
            release.wait(30)

        running_call = asyncio.ensure_future(workers.call(first))
        await asyncio.to_thread(begun.wait, 30)
        waiting = asyncio.ensure_future(workers.call(lambda: made.append(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        await running_call
        await workers.call(lambda: made.append(2))

    asyncio.run(calls())
    assert made == [2]


def test_a_call_that_hangs_does_not_keep_the_process_from_ending() -> None:
    program = """
        import asyncio, threading
        from llenvs.evaluation.worker_threads import WorkerThreads

        async def main():
            workers = WorkerThreads(2, "hanging")
            try:
                async with asyncio.timeout(0.2):
                    await workers.call(threading.Event().wait)
            except TimeoutError:
                print("given up", flush=True)

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")
