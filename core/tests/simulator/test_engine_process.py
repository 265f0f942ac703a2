"""An engine in a child process: its end is an error, not ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from changing_upstreams import Crashing, crashing, environment

from llenvs import Action
from llenvs.core.errors import SimulatorCrashed, UpstreamFailed
from llenvs.core.simulator import EngineProcess, EngineRefused
from llenvs.testing import EnvironmentConformance


def start() -> EngineProcess:
    return EngineProcess("changing_upstreams:engine", {"greeting": "count"}, name="kit/crashing")


class TestConformance(EnvironmentConformance):
    make = staticmethod(crashing)


def test_requests_and_answers_and_a_folder_of_its_own() -> None:
    engine = start()
    assert engine.request({"do": "set"}, b"41")[1] == b"41"
    answer, raw = engine.request({"do": "count"})
    assert (answer["text"], raw) == ("count 42", b"42")
    folder = Path(answer["in"])
    assert folder != Path.cwd()
    assert folder.is_dir()
    pid = engine.pid
    engine.close()
    engine.close()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(SimulatorCrashed, match="had ended before"):
        engine.request({"do": "count"})


def test_large_messages_pass() -> None:
    engine = start()
    try:
        assert engine.request({"do": "set", "padding": "x" * 300_000}, b" " * 200_000 + b"7")[1] == b"7"
    finally:
        engine.close()


def test_what_the_engine_raises_is_said_and_it_lives_on() -> None:
    engine = start()
    with pytest.raises(EngineRefused, match="ValueError: not like this"):
        engine.request({"do": "raise"})
    assert engine.request({"do": "count"})[1] == b"1"
    engine.close()


@pytest.mark.parametrize(
    ("action", "said"), [("segfault", "signal SIGSEGV; the last it wrote: about to fall"), ("exit", "status 3")]
)
def test_a_crash_is_an_error_and_the_state_lives_on(action: str, said: str) -> None:
    with environment(Crashing) as env:
        state = env.step(env.reset(options={"task_index": 2})[0], Action("count")).next_state
        assert state.observation.prompt == "count 3"
        with pytest.raises(SimulatorCrashed, match=said) as caught:
            env.step(state, Action(action))
        assert f"taking the action '{action}'" in str(caught.value) or "stepping" in str(caught.value)
        assert isinstance(caught.value, UpstreamFailed)
        assert env.stats.crashed == 2  # it was tried on a second engine
        assert env.step(state, Action("count")).next_state.observation.prompt == "count 4"


def test_an_engine_that_hangs_is_ended() -> None:
    with environment(Crashing) as env:
        state, _ = env.reset(options={"task_index": 2})
        with pytest.raises(SimulatorCrashed, match="no answer within 1 s") as caught:
            env.step(state, Action("hang"))
        assert caught.value.timed_out
        assert (env.stats.crashed, env.stats.live) == (1, 0)
        assert env.step(state, Action("count")).next_state.observation.prompt == "count 3"


def test_an_engine_killed_while_idle_is_replaced_unnoticed() -> None:
    with environment(Crashing) as env:
        state, _ = env.reset(options={"task_index": 1})
        (idle,) = env._cache._idle.values()
        assert isinstance(idle.simulator, Crashing)
        os.kill(idle.simulator.engine.pid, 9)
        assert env.step(state, Action("count")).next_state.observation.prompt == "count 2"
        assert (env.stats.crashed, env.stats.created) == (1, 2)


def test_engines_killed_while_idle_are_replaced_unnoticed_all_at_once() -> None:
    with environment(Crashing) as env:
        states = [env.reset(options={"task_index": task})[0] for task in range(3)]
        idle = [each.simulator for each in env._cache._idle.values()]
        assert len(idle) == 3
        for simulator in idle:
            assert isinstance(simulator, Crashing)
            assert simulator.alive
            os.kill(simulator.engine.pid, 9)
        for simulator in idle:  # they die one after the other
            os.waitid(os.P_PID, simulator.engine.pid, os.WEXITED | os.WNOWAIT)
        texts = [env.step(state, Action("count")).next_state.observation.prompt for state in states]
        assert texts == ["count 1", "count 2", "count 3"]
        assert not any(simulator.alive for simulator in idle)
        assert (env.stats.crashed, env.stats.at_work) == (1, 0)


def test_an_engine_that_cannot_begin_is_said() -> None:
    with pytest.raises(EngineRefused, match="ModuleNotFoundError: No module named 'no_such_module'"):
        EngineProcess("no_such_module:engine", {}, name="kit/none")


def test_it_dies_with_its_parent() -> None:
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from llenvs.core.simulator import EngineProcess\n"
        "engine = EngineProcess('changing_upstreams:engine', {'greeting': ''}, name='kit/child')\n"
        "print(engine.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 20
    while _alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_engines_of_its_own() -> None:
    with environment(Crashing) as env:
        state, _ = env.reset(options={"task_index": 1})
        child = os.fork()
        if child == 0:
            fine = env.step(state, Action("count")).next_state.observation.prompt == "count 2"
            env.close()
            os._exit(0 if fine and env.stats.created == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert env.step(state, Action("count")).next_state.observation.prompt == "count 2"
        assert env.stats.crashed == 0
