"""The life of an engine inside this process: started once, stopped once, never shared over a fork."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from llenvs.core import Generation
from llenvs.core.errors import InvalidOption
from llenvs.inference import GenerationRequest
from llenvs.inference.local.engine_backend import LocalEngineBackend
from llenvs.inference.option_checks import check_counts


class Engine:
    def __init__(self, number: int) -> None:
        self.number = number
        self.stopped = 0


class CountingBackend(LocalEngineBackend[Engine]):
    """Answers with the number of its engine."""

    name = "counting"

    def __init__(self) -> None:
        super().__init__("m")
        self.engines: list[Engine] = []

    def _start_engine(self) -> Engine:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        time.sleep(0.05)  # so that others come meanwhile
        self.engines.append(Engine(len(self.engines)))
        return self.engines[-1]

    def _stop_engine(self, engine: Engine) -> None:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        engine.stopped += 1

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        return [Generation(str((await self._started()).number))]


def test_it_is_started_once_for_all_threads_and_loops() -> None:
    backend = CountingBackend()
    assert backend.engines == []
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(backend.chat("x").text)) for _ in range(4)]
    threads += [threading.Thread(target=lambda: texts.append(asyncio.run(backend.achat("x")).text))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["0"] * 5
    assert len(backend.engines) == 1


def test_it_is_stopped_once_and_started_again_by_the_next_request() -> None:
    backend = CountingBackend()
    backend.close()
    assert backend.engines == []
    asyncio.run(backend.check())
    backend.close()
    asyncio.run(backend.aclose())
    assert [engine.stopped for engine in backend.engines] == [1]
    with backend:
        assert backend.chat("x").text == "1"
    assert [engine.stopped for engine in backend.engines] == [1, 1]


HEAD = """
import asyncio, multiprocessing, sys
sys.path.insert(0, sys.argv[1])
from test_engine_backend import CountingBackend
class Loud(CountingBackend):
    def _stop_engine(self, engine):
        print("stopped", engine.number, flush=True)
"""


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD + code, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_runs_at_the_end_of_the_interpreter_is_stopped() -> None:
    # also where no call was synchronous, so that the shared loop was never started
    said = python("backend, idle = Loud(), Loud()\nasyncio.run(backend.check())\nprint('end')")
    assert said == "end\nstopped 0\n"


FORK = """
def work():
    try:
        print("child", backend.chat("x").text, flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    backend.close()
def fork():
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    print("parent", backend.chat("x").text, flush=True)
backend = Loud()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_a_forked_process_has_an_engine_of_its_own() -> None:
    assert python(FORK + "backend.chat('x')\nfork()") == "child 1\nstopped 1\nparent 0\nstopped 0\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
@pytest.mark.parametrize("before", ["", "backend.chat('x')\n"], ids=["idle", "running"])
def test_a_forked_process_is_refused_where_it_cannot(before: str) -> None:
    said = python(FORK + f"Loud.fork_problem = 'no forks'\n{before}fork()")
    assert said == "EngineUnavailable counting: no forks\nparent 0\nstopped 0\n"


def test_counts() -> None:
    check_counts(slots=1, threads=None)
    for wrong in (0, -1, True, 2.0, "3"):
        with pytest.raises(InvalidOption, match="slots: must be a whole number of at least 1"):
            check_counts(threads=None, slots=wrong)
