"""Servers die; their clients see nothing but time."""

import asyncio
import gc
import os
import signal
import threading
import traceback
from pathlib import Path

import pytest
from life import descendants, eventually, is_running
from probing import behind, config

from llenvs import Action
from llenvs.container.client import ContainerEnvironment
from llenvs.core.errors import ContainerFailed


def servers(env: ContainerEnvironment) -> list[int]:
    """Process ids of the servers of this process."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"llenvs_container" in command and is_running(pid):
            found.append(pid)
    return found


def is_listening(pid: int) -> bool:
    """Whether the server has its socket, which is nearly being ready."""
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return "--uds" in command and Path(command[command.index("--uds") + 1]).exists()


def test_a_killed_server_is_started_again_and_the_step_repeated():
    with behind() as env:
        state, _ = env.reset(options={"task_index": 2})
        (pid,) = servers(env)
        os.kill(pid, signal.SIGKILL)
        assert env.step(state, Action("14")).terminated
        (again,) = servers(env)
        assert again != pid
    eventually(lambda: servers(env) == [], "no server is left")


def test_steps_in_flight_survive_kills():
    """Every step gives the right reward exactly once while servers are killed one after the other."""
    with behind(config(replicas=2)) as env:
        states = [env.reset(options={"task_index": i})[0] for i in range(5)]
        stop = threading.Event()
        killed = []

        def kill() -> None:
            while not stop.wait(0.5):
                alive = [pid for pid in servers(env) if is_listening(pid)]
                if len(alive) == 2:
                    os.kill(alive[len(killed) % 2], signal.SIGKILL)
                    killed.append(alive)

        async def run() -> list[float]:
            slots = asyncio.Semaphore(16)

            async def one(i: int) -> float:
                async with slots:
                    guess = 7 * (i % 5) if i % 3 else -1
                    await asyncio.sleep(0.02)
                    return (await env.astep(states[i % 5], Action(str(guess)))).rewards.total

            return await asyncio.gather(*(one(i) for i in range(3000)))

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            rewards = asyncio.run(run())
        finally:
            stop.set()
            killer.join()
        assert rewards == [float(i % 3 != 0) for i in range(3000)]
        assert len(killed) >= 2


def test_a_server_that_is_killed_while_it_is_started_again_is_started_once_more():
    with behind() as env:
        assert killed_twice(env)[0] == [1.0] * 20


def test_too_many_deaths_while_started_again_are_told_to_all_that_wait(caplog):
    with behind(config(restarts=1)) as env:
        failures, early = killed_twice(env)
    assert len(failures) == 20
    for failure in failures:
        assert isinstance(failure, ContainerFailed)
        assert "more often than restarts=1 allows" in str(failure)
        if early:
            assert "ended before it was ready (killed by SIGKILL)" in str(failure)
        # all raise the same error, and none makes its traceback longer for the others
        assert len(traceback.extract_tb(failure.__traceback__)) < 20
    del failures, failure
    gc.collect()
    assert "never retrieved" not in caplog.text


def killed_twice(env: ContainerEnvironment) -> tuple[list[float | BaseException], bool]:
    """Rewards or errors of 20 steps during which the server dies, and the next one before it is ready.

    The second value tells whether it was: a fast server may have come to listen before it was found.
    """
    state, _ = env.reset(options={"task_index": 2})
    (first,) = servers(env)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not is_running(first), "the server is dead")

    async def run() -> tuple[list[float | BaseException], bool]:
        steps = [asyncio.create_task(env.astep(state, Action("14"))) for _ in range(20)]
        while not (starting := servers(env)):
            await asyncio.sleep(0.005)
        os.kill(starting[0], signal.SIGSTOP)
        early = not is_listening(starting[0])
        os.kill(starting[0], signal.SIGKILL)
        ended = await asyncio.gather(*steps, return_exceptions=True)
        return [each if isinstance(each, BaseException) else each.rewards.total for each in ended], early

    return asyncio.run(run())


def test_a_step_that_kills_every_server_is_an_error_with_the_log():
    with behind(config(restarts=50)) as env:
        state, _ = env.reset(options={"task_index": 2})
        with pytest.raises(ContainerFailed, match="died or hung up 6 times while it had this request") as caught:
            env.step(state, Action("die"))
        assert "Started server process" in caught.value.log_tail
        assert env.step(state, Action("14")).terminated


def test_restarts_are_bounded():
    with behind(config(restarts=1)) as env:
        state, _ = env.reset(options={"task_index": 2})
        with pytest.raises(ContainerFailed, match="more often than restarts=1 allows"):
            env.step(state, Action("die"))


def test_no_server_at_an_address():
    with pytest.raises(ContainerFailed, match="no answer"):
        behind(config(runtime="url", url="http://127.0.0.1:9", start_timeout=1.0, env={}))


def test_the_replica_that_holds_a_state_is_preferred_and_load_is_spread():
    with behind(config(replicas=2)) as env:

        async def run() -> tuple[set[int], set[int]]:
            state, _ = await env.areset(options={"task_index": 2})
            known = env._known.find(state)
            assert known is not None
            alone = set()
            for _ in range(10):
                result = await env.astep(state, Action("same"))
                found = env._known.find(result.next_state)
                assert found is not None
                alone.add(found.holder - known.holder)
            crowd = await asyncio.gather(*(env.astep(state, Action("sleep 0.2")) for _ in range(20)))
            holders = {env._known.find(result.next_state).holder for result in crowd}  # type: ignore[union-attr]
            return alone, holders

        alone, holders = asyncio.run(run())
        assert alone == {0}
        assert len(holders) == 2


def test_a_full_queue_only_costs_time():
    with behind(config(max_in_flight=256)) as env:
        # the server's queue holds 1024, so two thousand from eight loops at once overfill it
        state, _ = env.reset(options={"task_index": 2})
        totals: list[float] = []

        def caller() -> None:
            async def run() -> list[float]:
                steps = [env.astep(state, Action("sleep 0.01" if i % 2 else "14")) for i in range(250)]
                return [result.rewards.total for result in await asyncio.gather(*steps)]

            totals.extend(asyncio.run(run()))

        threads = [threading.Thread(target=caller) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(totals) == 1000.0


def test_a_request_that_takes_too_long():
    from llenvs.container.errors import RequestTimedOut

    with behind(config(request_timeout=0.3)) as env:
        state, _ = env.reset(options={"task_index": 2})
        with pytest.raises(RequestTimedOut, match=r"within 0\.3 s"):
            env.step(state, Action("sleep 1.5"))
        assert env.step(state, Action("14")).terminated
