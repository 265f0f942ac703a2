from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading

import pytest

from llenvs.inference.loop import PerLoop, run_sync, shared_loop


async def where() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_sync_calls_share_one_loop() -> None:
    assert run_sync(where()) is run_sync(where()) is shared_loop()


def test_inside_a_running_loop() -> None:
    async def notebook() -> asyncio.AbstractEventLoop:
        return run_sync(where())

    assert asyncio.run(notebook()) is shared_loop()


def test_errors_and_results_come_back() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_sync(fail())

    async def give() -> int:
        await asyncio.sleep(0)
        return 3

    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(run_sync(give()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3] * 8


def test_the_loop_survives_what_would_end_it() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    loop = shared_loop()
    with pytest.raises(SystemExit):
        run_sync(leave())
    assert run_sync(where()) is loop


def test_a_sync_call_from_the_shared_loop_itself_is_refused() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return run_sync(inner())

    with pytest.raises(RuntimeError, match="use the async form"):
        run_sync(outer())


def test_ctrl_c_cancels_and_waits_for_the_clean_up() -> None:
    code = """
import asyncio
from llenvs.inference.loop import run_sync
async def work():
    try:
        print('working', flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.3)
        print('cleaned up', flush=True)
try:
    run_sync(work())
except KeyboardInterrupt:
    print('interrupted', flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "working\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "cleaned up\ninterrupted\n"
    assert child.returncode == 0


def test_one_value_for_each_loop() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    values = PerLoop(make)

    async def twice() -> tuple[object, object]:
        return values.get(), values.get()

    first, again = run_sync(twice())
    other, other_again = asyncio.run(twice())
    assert first is again
    assert other is other_again
    assert first is not other
    assert run_sync(twice())[0] is first
    assert len(made) == 2


def test_values_of_closed_loops_are_let_go() -> None:
    class Client:
        """Holds its loop, as HTTP clients do."""

        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()

    values = PerLoop(Client)

    async def use() -> None:
        values.get()

    for _ in range(5):
        asyncio.run(use())
    gc.collect()
    assert sum(isinstance(each, Client) for each in gc.get_objects()) == 1


def test_each_value_is_closed_on_its_own_loop() -> None:
    closed: list[tuple[object, asyncio.AbstractEventLoop]] = []
    values = PerLoop(asyncio.get_running_loop)

    async def use() -> asyncio.AbstractEventLoop:
        return values.get()

    async def close(value: asyncio.AbstractEventLoop) -> None:
        closed.append((value, asyncio.get_running_loop()))

    async def main() -> asyncio.AbstractEventLoop:
        await use()
        await values.aclose(close)
        await values.aclose(close)
        return asyncio.get_running_loop()

    shared = run_sync(use())
    asyncio.run(use())  # a loop that is gone when the others are closed
    here = asyncio.run(main())
    assert dict(closed) == {shared: shared, here: here}
