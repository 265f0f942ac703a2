"""What goes wrong with the upstream alone, and what users get wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Make, play

import llenvs
from llenvs import Action
from llenvs.core.errors import (
    InvalidOption,
    NotInstalled,
    SimulatorCrashed,
    UnknownEnvironment,
    UnknownOption,
    UpstreamFailed,
)
from llenvs_verifiers_v1.adapter import ADAPTER
from llenvs_verifiers_v1.errors import UnsupportedEnvironment


def strange(make: Make, kind: str, **options: Any) -> Any:
    return make("v1_strange", taskset_params={"kind": kind}, **options)


def test_importing_the_adapter_imports_no_upstream() -> None:
    code = (
        "import sys, llenvs_verifiers_v1; llenvs_verifiers_v1.ADAPTER.list_environments();"
        "print([m for m in ('verifiers', 'aiohttp', 'openai', 'llenvs_verifiers_v1.episode') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_names_at_hand() -> None:
    names = {info.name for info in ADAPTER.list_environments()}
    assert {"v1_doubler", "v1_guesser", "v1_bump"} <= names
    assert not {"classic_module", "conftest", "llenvs_verifiers_v1"} & names


def test_the_process_is_left_as_it_was(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    env = make("v1_guesser")
    play(env, 0, "5")
    assert {number: signal.getsignal(number) for number in before} == before
    assert list(tmp_path.iterdir()) == []
    env.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "verifiers_v1/v1_guesser"]


def test_names_as_the_upstream_takes_them(make: Make) -> None:
    assert len(make("someone/v1-doubler@0.1", size=2)) == 2


def test_wrong_names(make: Make) -> None:
    with pytest.raises(UnknownEnvironment, match=r"did you mean 'v1_doubler'.*prime env install v1_doublerx"):
        make("v1_doublerx")
    with pytest.raises(UnknownEnvironment, match=r"did you mean 'user_sim'"):
        make("user-simx+v1_doubler")
    with pytest.raises(UnsupportedEnvironment, match="a module of the classic API, for the adapter verifiers"):
        make("classic_module")


def test_wrong_parameters(make: Make) -> None:
    with pytest.raises(UnknownOption, match="num_task"):
        make("v1_doubler", taskset_params={"num_task": 3})
    with pytest.raises(InvalidOption, match=r"taskset\.num_tasks"):
        make("v1_doubler", taskset_params={"num_tasks": "many"})
    with pytest.raises(UnknownOption, match="did you mean 'taskset_params'"):
        make("v1_doubler", tasksetparams={})
    with pytest.raises(InvalidOption, match=r"env_params\.taskset: has an option of its own, taskset_params"):
        make("v1_doubler", env_params={"taskset": {}})
    with pytest.raises(InvalidOption, match=r"size: is needed: the taskset is infinite"):
        make("v1_endless")
    with pytest.raises(InvalidOption, match=r"seat: is no seat of this environment, got 'judge'; valid: agent"):
        make("v1_doubler", seat="judge")
    with pytest.raises(InvalidOption, match=r"env_llm: the seat 'user' needs a model"):
        make("user-sim+v1_booking")
    with pytest.raises(InvalidOption, match="env_llm: must be a backend or name one, got 'gpt'"):
        make("user-sim+v1_booking", env_llm="gpt")


def test_what_cannot_be_stepped(make: Make) -> None:
    with pytest.raises(UpstreamFailed, match="LookupError: no data here"):
        strange(make, "raises")
    with pytest.raises(UnsupportedEnvironment, match=r"containers; .*runtime: \{type: docker\}"):
        strange(make, "container")
    with pytest.raises(UnsupportedEnvironment, match=r"lacks `if __name__ == '__main__'"):
        strange(make, "lone")
    with pytest.raises(UnsupportedEnvironment, match="a harness of its own"):
        make("v1_own_harness")
    assert play(make("v1_own_harness", harness="relay"), 3, "6").rewards["exact"].reward == 1.0


def test_tools_that_another_process_cannot_import(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(
        UnsupportedEnvironment, match=r"v1_bump of its tools is not found by another Python process"
    ):
        make("v1_bump")


def test_failures_are_errors_and_no_scores(make: Make) -> None:
    env = strange(make, "bad_setup")
    with pytest.raises(UpstreamFailed, match=r"starting task 1: TaskError: task setup: LookupError: no such box"):
        env.reset(options={"task_index": 1})
    slow = strange(make, "slow", time_limit=0.3)
    with pytest.raises(SimulatorCrashed, match=r"no answer within 0\.3 s \(option time_limit\)"):
        slow.reset(seed=0)


@pytest.mark.parametrize("mode", ["auto", "episode"])
def test_text_that_no_request_can_carry(make: Make, mode: str) -> None:
    env = make("v1_doubler", mode=mode)
    result = play(env, 0, "a\ud800b\0")
    assert result.next_state.observation.messages[-1].content == "a?b\0"
    assert result.rewards["exact"].reward == 0.0
    env.close()


def test_a_tool_server_that_is_gone_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from llenvs_verifiers_v1 import relay

    async def refused(*args: Any) -> Any:
        raise ExceptionGroup("tasks", [ExceptionGroup("more", [ConnectionError("tool server refused")])])

    monkeypatch.setattr(relay._Tools, "call", refused)
    env = make("v1_bump")
    state, _ = env.reset(options={"task_index": 0})
    with pytest.raises(UpstreamFailed, match="ConnectionError: tool server refused"):
        env.step(state, Action.from_tool_call("bump", {"n": 1}))
    env.close()


def test_stops_of_the_task(make: Make) -> None:
    env = strange(make, "stopped")
    assert env.spec.metadata["mode"] == "episode"
    state, _ = env.reset(seed=0)
    middle = env.step(state, Action.from_tool_call("any", text="go on"))
    assert not middle.done  # the chat loop answers a call of a tool that there is not
    result = env.step(state, Action.from_tool_call("any", text="stop"))
    assert (result.terminated, result.info["stop_condition"]) == (True, "said_stop")


def test_without_the_upstream_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from llenvs_verifiers_v1 import loading

    monkeypatch.setattr(loading, "version", lambda name: "0.3.1")
    with pytest.raises(NotInstalled, match=r"here is verifiers 0\.3\.1.*classic API is verifiers"):
        llenvs.make("verifiers_v1/v1_doubler")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "verifiers" else real(name)
    )
    with pytest.raises(NotInstalled, match=r"pip install llenvs-verifiers-v1\b"):
        llenvs.make("verifiers_v1/v1_doubler")


def test_options_have_documentation() -> None:
    assert all(field.description for field in ADAPTER.options.model_fields.values())
