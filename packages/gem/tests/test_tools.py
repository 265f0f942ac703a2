"""Tools: a program runner with limits, a search client with a real server, tools of a real MCP server."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gem_play import boxed

from llenvs import Action, Environment, State
from llenvs.core import ToolCall, ToolStatus
from llenvs.core.errors import InvalidOption
from llenvs.core.tools import HttpServer, StdioServer
from llenvs_gem.tools import LAST_USE, USED_UP, mcp_server
from llenvs_gem.upstream import module

Env = Callable[..., Environment[Any]]
ROWS = [{"problem": "How much is 3*12?", "answer": "36"}]
QUESTIONS = [{"problem": "Where was the writer of Blue Lanes born?", "answer": ["Oakford"]}]
DOCUMENTS = ["Blue Lanes\nA book by Lena Park.", "Lena Park\nA writer, born in Oakford.\nShe lives there."]


class Retrieval(BaseHTTPRequestHandler):
    """A retrieval server of the upstream's kind: msgpack both ways."""

    asked: list[Any]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        query = msgspec.msgpack.decode(body)
        self.asked.append(query)
        if query["query"] == "trouble":
            self.send_error(500)
            return
        found = [{"document": {"contents": text}, "score": 1.0} for text in DOCUMENTS[: query["topk"]]]
        answer = msgspec.msgpack.encode({"result": found})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def retrieval() -> Iterator[str]:
    """The address of a server that runs here."""
    Retrieval.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Retrieval)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/retrieve"
    server.shutdown()
    server.server_close()
    thread.join()


def step(env: Environment[Any], state: State[Any], *calls: ToolCall, text: str = "") -> Any:
    return env.step(state, Action(text, calls))


def call(tool: str, id: str = "a", **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments, id)


def test_a_state_with_tools_branches(env: Env) -> None:
    maths = env("math:GSM8K", dataset=ROWS, tool_types=["python"])
    state, _ = maths.reset()
    assert state.observation.prompt == "How much is 3*12?"
    assert [tool.name for tool in state.observation.available_tools] == ["python", "submit_answer"]
    used = step(maths, state, call("python", code="print(3*12)")).next_state
    used = State.from_json(used.to_json())
    for action, reward in (
        (Action.from_tool_call("submit_answer", {"answer": "36"}), 1.0),
        (Action.from_tool_call("submit_answer", {"answer": "so \\boxed{36.0}"}), 1.0),
        (Action.from_tool_call("submit_answer", {"answer": "35"}), 0.0),
        (Action(f"It is {boxed('36')}."), 1.0),
        (Action("It is 36."), 0.0),
    ):
        for before in (state, used):
            result = maths.step(before, action)
            assert (result.terminated, result.truncated) == (True, False)
            assert result.rewards["reward"].reward == result.rewards["success"].reward == reward
            assert maths.spec.is_success(result.rewards) == (reward == 1.0)


def test_programs_that_fail_and_programs_that_hang(env: Env) -> None:
    maths = env("math:GSM8K", dataset=ROWS, tool_types=["python"], python_time_limit=1, tool_success_reward=0.25)
    state, _ = maths.reset()
    result = step(
        maths,
        state,
        call("python", "1", code="print(2)\n1/0"),
        call("python", "2", code="while True: pass"),
        call("python", "3", code="print(open('/nowhere'))"),
        call("python", "4"),
        call("pyton", "5", code="1"),
    )
    said = {r.call_id: (r.status, r.content) for r in result.next_state.observation.tool_results}
    assert said["1"][0] is ToolStatus.ERROR
    assert said["1"][1].startswith("Error: Code execution result: 2\n")
    assert said["1"][1].endswith('File "<string>", line 2, in <module>\nZeroDivisionError: division by zero')
    assert said["2"] == (
        ToolStatus.ERROR, "Error: Code execution result: Execution timed out after 1 seconds.",
    )  # fmt: skip
    assert "FileNotFoundError" in said["3"][1]
    assert said["4"][0] is ToolStatus.INVALID_ARGUMENTS
    assert (said["5"][0], "'python'" in said["5"][1]) == (ToolStatus.UNKNOWN_TOOL, True)
    assert result.rewards["tool_reward"].reward == 0.0
    assert not result.done


def test_a_program_without_its_imports_runs_behind_the_upstreams(env: Env) -> None:
    maths = env("math:GSM8K", dataset=ROWS, tool_types=["python"], python_time_limit=100)
    state, _ = maths.reset()
    result = step(maths, state, call("python", code="print(prod([3, 12]))"))
    assert result.next_state.observation.tool_results[0].content == "Code execution result: 36\n"


def test_tool_uses_are_counted_and_end(env: Env) -> None:
    maths = env("math:GSM8K", dataset=ROWS, tool_types=["python"], max_tool_uses=2, tool_reward=0.5)
    assert maths.spec.max_steps == 3
    state, _ = maths.reset()
    first = step(maths, state, call("python", code="print(1)"))
    assert (first.rewards["tool_reward"].reward, first.next_state.observation.prompt) == (0.5, "")
    both = [call("python", "x", code="print(2)"), call("python", "y", code="print(3)")]
    second = step(maths, first.next_state, *both)
    contents = [r.content for r in second.next_state.observation.tool_results]
    assert contents == ["Code execution result: 2\n", USED_UP]
    assert second.next_state.observation.prompt == LAST_USE
    assert second.rewards["tool_reward"].reward == 0.5
    assert second.info["tool_uses"] == 2
    third = step(maths, second.next_state, call("python", code="print(4)"))
    assert third.next_state.observation.tool_results[0].content == USED_UP
    assert (third.terminated, third.truncated) == (False, True)
    assert [third.rewards[n].reward for n in ("tool_reward", "reward", "success")] == [0.0, 0.0, 0.0]
    answered = step(maths, second.next_state, call("submit_answer", answer="36"))
    assert answered.rewards["reward"].reward == 1.0


def test_search_speaks_the_upstreams_protocol(env: Env, retrieval: str) -> None:
    questions = env("qa:HotpotQA", dataset=QUESTIONS, tool_types=["search"], search_url=retrieval, search_topk=2)
    assert [tool.name for tool in questions.available_tools] == ["search", "submit_answer"]
    state, _ = questions.reset()
    result = step(questions, state, call("search", query="Blue Lanes"))
    theirs = module("gem.tools.search_tool").SearchTool(search_url=retrieval, topk=2)
    _, failed, said, _ = theirs.execute_action("<search>Blue Lanes</search>")
    assert not failed
    assert result.next_state.observation.tool_results[0].content == said.strip()
    assert "Doc 2(Title: Lena Park) A writer, born in Oakford.\nShe lives there." in said
    assert Retrieval.asked == [{"query": "Blue Lanes", "topk": 2, "return_scores": True}] * 2
    trouble = step(questions, state, call("search", query="trouble")).next_state.observation.tool_results[0]
    assert (trouble.status, "500" in trouble.content) == (ToolStatus.ERROR, True)
    for answer in ("Oakford", "<answer>oakford.</answer>"):
        assert step(questions, state, call("submit_answer", answer=answer)).rewards["reward"].reward == 1.0
    assert step(questions, state, text="<answer>Oakford</answer>").rewards["reward"].reward == 1.0


def test_a_search_without_an_address(env: Env, monkeypatch: pytest.MonkeyPatch, retrieval: str) -> None:
    monkeypatch.delenv("SEARCH_URL", raising=False)
    with pytest.raises(InvalidOption, match=r"search_url: is needed by the tool search.*SEARCH_URL"):
        env("qa:HotpotQA", dataset=QUESTIONS, tool_types=["search"])
    monkeypatch.setenv("SEARCH_URL", retrieval)
    questions = env("qa:HotpotQA", dataset=QUESTIONS, tool_types=["search"])
    state, _ = questions.reset()
    assert step(questions, state, call("search", query="x")).next_state.observation.tool_results[0].ok


MCP_SERVER = """
from mcp.server import MCPServer

server = MCPServer("adder")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    if a == 13:
        raise ValueError("not with me")
    return a + b

server.run()
"""


def test_tools_of_an_mcp_server(env: Env, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    (tmp_path / "server.py").write_text(MCP_SERVER, encoding="utf-8")
    server = {"command": sys.executable, "args": ["server.py"], "cwd": str(tmp_path)}
    maths = env("math:GSM8K", dataset=ROWS, tool_types=["python", "mcp"], mcp={"mcpServers": {"adder": server}})
    assert [tool.name for tool in maths.available_tools] == ["add", "python", "submit_answer"]
    state, _ = maths.reset()
    result = step(maths, state, call("add", "1", a=12, b=24), call("add", "2", a=13, b=0))
    good, bad = result.next_state.observation.tool_results
    assert (good.content, good.status) == ("36", ToolStatus.SUCCESS)
    assert bad.status is ToolStatus.ERROR
    assert step(maths, result.next_state, call("submit_answer", answer="36")).rewards["success"].reward == 1.0


def test_how_an_mcp_server_is_described() -> None:
    assert mcp_server("http://host/mcp") == HttpServer("http://host/mcp")
    assert mcp_server({"url": "http://host/mcp", "headers": {"a": "b"}}) == HttpServer(
        "http://host/mcp", {"a": "b"}
    )
    assert mcp_server({"command": ["prog", "x"], "args": ["y"], "env": {"A": "1"}}) == StdioServer(
        ("prog", "x", "y"), {"A": "1"}
    )
    for wrong in (None, 3, {}, {"command": "x", "sdtin": 1}, {"mcpServers": {}}, {"mcpServers": {"a": 1}}):
        with pytest.raises(InvalidOption, match="mcp"):
            mcp_server(wrong)


def test_programs_answer_code_by_tool_too(env: Env) -> None:
    rows = [{"problem": "Double it.", "tests": {"inputs": ["3"], "outputs": ["6"]}}]
    code = env("code:Taco8k", dataset=rows, tool_types=["python"], time_limit=60)
    state, _ = code.reset()
    right = "print(2 * int(input()))"
    for answer in (right, f"```python\n{right}\n```"):
        assert step(code, state, call("submit_answer", answer=answer)).rewards["reward"].reward == 1.0
    assert step(code, state, text=f"```python\n{right}\n```").rewards["reward"].reward == 1.0
    assert step(code, state, text=right).rewards["reward"].reward == -0.1


def test_games_take_tools_between_moves(env: Env) -> None:
    game = env("game:GuessTheNumber-v0-hard", tool_types=["python"], max_tool_uses=2, tool_success_reward=0.25)
    assert [tool.name for tool in game.available_tools] == ["python", "submit_answer"]
    state, _ = game.reset(options={"task_index": 0})
    assert (
        state.observation.prompt
        == env("game:GuessTheNumber-v0-hard").reset(options={"task_index": 0})[0].observation.prompt
    )
    asked = step(game, state, call("python", code="print((1 + 50) // 2)"))
    assert asked.next_state.observation.tool_results[0].content == "Code execution result: 25\n"
    assert [asked.rewards[n].reward for n in ("reward", "tool_reward")] == [0.0, 0.25]
    assert not asked.done
    at = State.from_json(asked.next_state.to_json())
    for moved in (step(game, at, call("submit_answer", answer="25")), step(game, at, text=boxed("25"))):
        assert moved.next_state.observation.prompt == (
            "At turn 1, you guessed 25, and the target number is higher than 25."
        )
        assert [moved.rewards[n].reward for n in ("reward", "tool_reward")] == [0.0, 0.0]
        assert not moved.done
    won = step(game, moved.next_state, call("submit_answer", answer="41"), call("python", "b", code="print(1)"))
    assert won.terminated
    assert [won.rewards[n].reward for n in ("reward", "success", "tool_reward")] == [1.0, 1.0, 0.0]
    assert not won.next_state.observation.tool_results[1].ok
    second = step(game, moved.next_state, call("python", code="print(2)"))
    assert second.next_state.observation.prompt == LAST_USE
    third = step(game, second.next_state, call("python", code="print(3)"))
    assert third.next_state.observation.tool_results[0].content == USED_UP
    assert (third.rewards["reward"].reward, third.terminated) == (-0.1, True)  # a move that cannot be read
