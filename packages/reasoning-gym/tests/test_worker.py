import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

import llenvs
from llenvs import Action
from llenvs_reasoning_gym.worker import WORKER, Worker

OPENING = {"name": "coin_flip", "config": {"size": 2, "seed": 42}, "repair": True}


@pytest.fixture
def worker() -> Iterator[Worker]:
    one = Worker(linger=0.05)
    one.acquire()
    yield one
    one.release()
    one.stop()
    assert one.pid is None


def alive(pid: int) -> bool:
    """Whether the process runs (one that only waits to be collected does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pid: int, within: float = 20.0) -> bool:
    end = time.monotonic() + within
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


def test_it_starts_late_ends_with_its_last_user_and_starts_again(worker: Worker) -> None:
    assert worker.pid is None
    entry = worker.request("k", OPENING, {"op": "entry", "index": 0}, 60)
    pid = worker.pid
    assert pid is not None
    worker.acquire()
    worker.release()
    time.sleep(0.2)
    assert worker.pid == pid
    worker.release()
    assert gone(pid)
    worker.acquire()
    assert worker.request("k", OPENING, {"op": "entry", "index": 0}, 60) == entry
    assert worker.pid != pid


def test_a_killed_worker_is_replaced_between_requests(worker: Worker) -> None:
    entry = worker.request("k", OPENING, {"op": "entry", "index": 1}, 60)
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert worker.request("k", OPENING, {"op": "entry", "index": 1}, 60) == entry


def test_many_threads_get_their_own_answers() -> None:
    with llenvs.make("reasoning_gym/prime_factorization", size=40) as env:
        states = [env.reset(options={"task_index": i})[0] for i in range(40)]
        found: dict[int, list[float]] = {}

        def play(index: int) -> None:
            right = states[index].hidden["entry"]["answer"]
            found[index] = [
                env.step(states[index], Action(f"<answer>{a}</answer>")).rewards.total for a in (right, "1")
            ]

        threads = [threading.Thread(target=play, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {i: [1.0, 0.01] for i in range(40)}


@pytest.mark.parametrize(
    "limit", [3.0, pytest.param(600.0, marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux's SIGIO"))]
)
def test_it_dies_with_its_parent_even_inside_one_long_computation(limit: float) -> None:
    """The parent is killed while its worker computes what no thread of Python's could interrupt."""
    code = (
        f"import sys; limit = {limit}; from llenvs_reasoning_gym.worker import WORKER\n"
        f"opening = {OPENING!r}\n"
        "entry = WORKER.request('k', opening, {'op': 'entry', 'index': 0}, 60)\n"
        "print(WORKER.pid, flush=True)\n"
        "WORKER.request('k', opening, {'op': 'score', 'answer': '1e999999999', 'entry': entry}, limit)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(pid)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_a_worker_of_its_own() -> None:
    with llenvs.make("reasoning_gym/coin_flip", size=2) as env:
        prompt = env.reset(options={"task_index": 0})[0].observation.prompt
        ours = WORKER.pid
        child = os.fork()
        if child == 0:
            same = env.reset(options={"task_index": 0})[0].observation.prompt == prompt
            own = WORKER.pid not in (None, ours)
            WORKER.stop()
            os._exit(0 if same and own else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert env.reset(options={"task_index": 0})[0].observation.prompt == prompt
        assert WORKER.pid == ours


def test_safe_datasets_start_no_worker() -> None:
    code = (
        "import llenvs; from llenvs_reasoning_gym.worker import WORKER\n"
        "env = llenvs.make('reasoning_gym/leg_counting')\n"
        "state, _ = env.reset(seed=1); env.step(state, llenvs.Action('1')); print(WORKER.pid)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "None\n"
