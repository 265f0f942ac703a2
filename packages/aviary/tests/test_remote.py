"""Tasks of a server of the upstream, on this machine."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import aviary_own
import httpx
import pytest
from aviary_play import answers, begin, call, played, reward

from llenvs import Action, State
from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs.testing.walks import check_walk
from llenvs_aviary.environment import AviaryEnvironment

pytest.importorskip("uvicorn", reason="the upstream's server needs fhaviary[server]")
Make = Callable[..., AviaryEnvironment]
KEY = "a key for tests"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A TaskDatasetServer with three kinds of tasks; its address."""
    import uvicorn
    from aviary.core import DummyEnv, TaskDatasetServer
    from aviary.env import EnvsTaskDataset

    class Fresh(EnvsTaskDataset[Any]):
        def get_new_env_by_idx(self, idx: int) -> Any:
            kinds = [
                lambda: DummyEnv(end_immediately=False),
                lambda: aviary_own.treasure(start=1),
                aviary_own.Breaking,
            ]
            return kinds[idx]()

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = TaskDatasetServer(Fresh([None] * 3), host="127.0.0.1", port=port, api_key=KEY).app
    running = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
    thread = threading.Thread(target=lambda: asyncio.run(running.serve()), daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(timeout=30)


@pytest.fixture
def env(make: Make, server: str, monkeypatch: pytest.MonkeyPatch) -> AviaryEnvironment:
    monkeypatch.setenv("AVIARY_API_KEY", KEY)
    return make("remote", server_url=f"{server}/", max_live=2, max_steps=60)


def running_there(server: str) -> int:
    info = httpx.get(f"{server}/info", headers={"X-API-Key": KEY}).json()
    return len(info["running_env_ids"])


def test_the_tasks_of_the_server(env: AviaryEnvironment) -> None:
    assert len(env) == 3
    state = begin(env, 1)
    assert state.observation.prompt == "You stand at 1. Find the treasure."
    assert [tool.name for tool in state.observation.available_tools] == ["walk", "dig", "roll", "fall"]
    results = played(env, 1, [call("walk", by=2), call("dig")])
    assert [answers(r) for r in results] == [["at 3 after 1 walks"], ["gold"]]
    assert ([reward(r) for r in results], results[1].terminated) == ([0.0, 1.0], True)
    # a walk from an earlier state is one of its own on the server
    assert answers(env.step(state, call("walk", by=7))) == ["at 8 after 1 walks"]


def test_older_states_are_replayed_to(make: Make, env: AviaryEnvironment, server: str) -> None:
    def act(state: State[Any], rng: random.Random) -> Action:
        if state.observation.available_tools[0].name == "print_story":
            return rng.choice([call("cast_int", x=rng.random() * 9), Action("Once")])
        return rng.choice([call("walk", by=rng.choice([-2, -1, 7])), Action("Hm.")])

    env = make("remote", server_url=server, size=2, max_live=2, max_steps=12)
    check_walk(env, act, steps=24, branches=5)
    assert env.stats.replayed > 0
    assert env.stats.snapshots == 0


def test_environments_on_the_server_are_closed(env: AviaryEnvironment, server: str) -> None:
    before = running_there(server)
    for _ in range(5):
        begin(env, 0)
    assert running_there(server) - before <= 2  # max_live
    env.close()
    assert running_there(server) == before


def test_what_the_server_says_is_in_the_error(env: AviaryEnvironment) -> None:
    with pytest.raises(UpstreamFailed, match=r"(?s)500.*KeyError\('lost my place'\)"):
        env.step(begin(env, 2), Action("x"))


def test_a_wrong_key_and_no_server_are_said(make: Make, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AVIARY_API_KEY", raising=False)
    with pytest.raises(UpstreamFailed, match=r"403"):
        make("remote", server_url=server)
    with pytest.raises(UpstreamFailed, match=r"asking the server at http://127.0.0.1:9 what it serves"):
        make("remote", server_url="http://127.0.0.1:9")
    with pytest.raises(InvalidOption, match=r"server_url: is needed"):
        make("remote")
