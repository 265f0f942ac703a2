"""MCP tools, against a real server from PyPI (mcp-server-time, stdio) and one made with the SDK (HTTP)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from llenvs.core import Action, EnvironmentSpec, ToolCall, ToolEnvironment, ToolStatus
from llenvs.core.errors import InvalidOption, NotInstalled
from llenvs.core.tool_environment import TaskStart
from llenvs.core.tools import HttpServer, MCPToolExecutor, StdioServer, Tool, ToolServerFailed

TIME = StdioServer((sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"))
CONVERT = ToolCall(
    "convert_time", {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}, "convert"
)

HTTP_SERVER = """
import os, sys
from mcp.server import MCPServer

server = MCPServer("adder")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@server.tool()
def die() -> str:
    os._exit(1)

server.run(transport="streamable-http", port=int(sys.argv[1]))
"""


@pytest.fixture
def clock() -> Iterator[MCPToolExecutor]:
    with MCPToolExecutor(TIME) as executor:
        yield executor


def children() -> list[int]:
    """The processes of the time server that this process started."""
    done = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = (line.split(None, 2) for line in done.stdout.splitlines()[1:])
    return [int(pid) for pid, parent, args in rows if int(parent) == os.getpid() and "mcp_server_time" in args]


def kill(pid: int) -> None:
    """End a process and wait until it has closed its pipes."""
    os.kill(pid, signal.SIGKILL)
    while True:
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        state = done.stdout.strip()
        if not state or (state[0] == "Z" and "l" not in state):  # with an l: other threads hold the pipes yet
            return


def test_the_tools_of_a_server_are_listed_with_their_schema(clock: MCPToolExecutor) -> None:
    assert [d.name for d in clock.definitions] == ["get_current_time", "convert_time"]
    schema = clock.definitions[1].parameters
    assert schema["required"] == ["source_timezone", "time", "target_timezone"]
    assert "24-hour format" in schema["properties"]["time"]["description"]


def test_calls_reach_the_server_side_by_side(clock: MCPToolExecutor) -> None:
    now = ToolCall("get_current_time", {"timezone": "UTC"}, "now")
    converted, current, wrong_zone, wrong_type, unknown = clock.execute(
        [
            CONVERT,
            now,
            ToolCall("get_current_time", {"timezone": "Mars"}, "mars"),
            ToolCall("get_current_time", {"timezone": 3}, "three"),
            ToolCall("get_time", {}, "unknown"),
        ]
    ).results
    assert (converted.call_id, converted.status) == ("convert", ToolStatus.SUCCESS)
    assert json.loads(converted.content)["time_difference"] == "-9.0h"
    assert json.loads(current.content)["timezone"] == "UTC"
    assert wrong_zone.status is ToolStatus.ERROR
    assert "Invalid timezone" in wrong_zone.content
    assert wrong_type.status is ToolStatus.INVALID_ARGUMENTS
    assert unknown.status is ToolStatus.UNKNOWN_TOOL


def test_a_server_that_died_between_calls_is_started_again(clock: MCPToolExecutor) -> None:
    assert clock.execute([CONVERT]).results[0].ok
    (first,) = children()
    kill(first)
    assert clock.execute([CONVERT]).results[0].ok
    (second,) = children()
    assert second != first


def test_a_call_that_the_server_dies_in_is_an_error_and_the_next_one_works(clock: MCPToolExecutor) -> None:
    (pid,) = children()
    os.kill(pid, signal.SIGSTOP)  # the call is sent and not answered
    killer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    killer.start()
    (result,) = clock.execute([CONVERT]).results
    killer.join()
    assert result.status is ToolStatus.ERROR
    assert "stopped while running 'convert_time'" in result.content
    assert clock.execute([CONVERT]).results[0].ok


def test_a_server_that_does_not_answer_runs_out_of_time() -> None:
    with MCPToolExecutor(TIME, timeout=0.3) as executor:
        (pid,) = children()
        os.kill(pid, signal.SIGSTOP)
        try:
            (result,) = executor.execute([CONVERT]).results
        finally:
            os.kill(pid, signal.SIGCONT)
        assert result.content == "Error: the tool did not finish within 0.3 seconds."


def test_closing_ends_the_server_and_twice_is_fine() -> None:
    executor = MCPToolExecutor(TIME)
    assert len(children()) == 1
    executor.close()
    executor.close()
    assert children() == []


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (StdioServer(("no-such-program-anywhere",)), "No such file"),
        (StdioServer((sys.executable, "-c", "import sys; sys.exit('no licence found')")), "no licence found"),
        (HttpServer("http://127.0.0.1:9/mcp"), "connection"),
        (StdioServer((sys.executable, "-c", "import time; time.sleep(60)")), "timed out"),
    ],
)
def test_a_server_that_does_not_start_says_why(server: Any, said: str) -> None:
    with pytest.raises(ToolServerFailed, match=f"(?is)did not start.*{re.escape(said)}"):
        MCPToolExecutor(server, connect_timeout=2 if said == "timed out" else 30)


def test_names_that_the_server_lacks_are_refused() -> None:
    with pytest.raises(InvalidOption, match=r"no such tool.*get_current_time, convert_time"):
        MCPToolExecutor(TIME, include=["get_time"])
    with pytest.raises(InvalidOption, match="two tools have this name"):
        MCPToolExecutor(TIME, tools={"convert_time": lambda: "mine"})
    assert children() == []


def test_without_the_sdk_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[mcp\]"'):
        MCPToolExecutor(TIME)


# -- streamable HTTP ----------------------------------------------------------------------------------------------


class Adder:
    """An HTTP server in a child process, always on the same port."""

    def __init__(self, script: Path) -> None:
        script.write_text(HTTP_SERVER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._script = script
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(self._script), str(self.port)], stdout=subprocess.DEVNULL
        )
        while True:
            assert self.process.poll() is None
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def adder(tmp_path: Path) -> Iterator[Adder]:
    server = Adder(tmp_path / "adder.py")
    server.start()
    yield server
    server.stop()


def test_a_server_over_http_that_dies_and_comes_back(adder: Adder) -> None:
    add = ToolCall("add", {"a": 2, "b": 40}, "1")
    with MCPToolExecutor(adder.url) as executor:
        assert [d.name for d in executor.definitions] == ["add", "die"]
        assert executor.execute([add]).results[0].content == "42"
        adder.stop()
        (gone,) = executor.execute([add]).results
        assert gone.status is ToolStatus.ERROR
        assert "did not start" in gone.content
        adder.start()
        assert executor.execute([add]).results[0].content == "42"
        adder.stop()
        adder.start()  # between two calls: nobody needs to notice
        assert executor.execute([add]).results[0].content == "42"
        (died,) = executor.execute([ToolCall("die", {}, "2")]).results
        assert "stopped while running 'die'" in died.content
        adder.start()
        assert executor.execute([add]).results[0].content == "42"


# -- in an environment --------------------------------------------------------------------------------------------


class TimeTask(ToolEnvironment[dict[str, Any]]):
    """How late is it in UTC when it is noon in Tokyo?"""

    def __init__(self) -> None:
        submit = Tool.from_callable(self.submit, stateful=True, terminal=True)
        executor = MCPToolExecutor(TIME, [submit], include=["convert_time"])
        super().__init__(EnvironmentSpec("time", "toys", max_steps=4, is_multi_turn=True), executor)

    @staticmethod
    def submit(hidden: dict[str, Any], time: str) -> tuple[str, dict[str, Any]]:
        """Submit the time as HH:MM."""
        return "Submitted.", {**hidden, "submitted": time}

    @property
    def num_tasks(self) -> int:
        return 1

    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        return TaskStart("It is 12:00 in Tokyo. How late is it in UTC?", {"submitted": None})

    def _signals(self, state: Any, action: Action, next_state: Any) -> tuple[()]:
        return ()


def test_an_environment_over_a_server() -> None:
    with TimeTask() as env:
        state, _ = env.reset(options={"task_index": 0})
        assert [t.name for t in state.observation.available_tools] == ["convert_time", "submit"]
        seen = env.step(state, Action("", (CONVERT,))).next_state
        found = json.loads(seen.observation.tool_results[0].content)["target"]["datetime"][11:16]
        assert found == "03:00"
        end = env.step(seen, Action.from_tool_call("submit", {"time": found}))
        assert end.terminated
        assert end.next_state.hidden == {"submitted": "03:00"}
        again = env.step(state, Action("", (CONVERT,))).next_state
        assert json.loads(again.observation.tool_results[0].content)["time_difference"] == "-9.0h"
    assert children() == []


ENDLESS_SERVER = """
import json, sys

for number, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        answer = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "endless", "version": "1"},
        }
    elif "id" in asked:
        tool = {"name": f"tool_{number}", "inputSchema": {"type": "object"}}
        answer = {"tools": [tool], "nextCursor": str(number)}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


def test_a_server_whose_list_of_tools_has_no_end() -> None:
    with pytest.raises(ToolServerFailed, match="did not list its tools: timed out"):
        MCPToolExecutor(StdioServer((sys.executable, "-c", ENDLESS_SERVER)), connect_timeout=10.0)
