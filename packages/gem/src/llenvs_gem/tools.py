"""The tools that a model may use before it answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import (
    AsyncToolExecutor,
    Execution,
    HttpServer,
    MCPToolExecutor,
    StdioServer,
    Tool,
    ToolCall,
    ToolExecutor,
    ToolResult,
    ToolStatus,
)
from llenvs.core.tools.errors import ToolFailed
from llenvs_gem.options import QuestionOptions
from llenvs_gem.program import run_program
from llenvs_gem.upstream import module

SUBMIT = "submit_answer"
"""The tool that ends an episode."""
USED_UP = "Error: no tool calls are left. Give the final answer."
LAST_USE = "That was the last tool call. Give the final answer."
_SEARCH_FAILED = "[SearchTool Error"  # begins what the upstream's tool says when it cannot search


def make_executor(options: QuestionOptions) -> ToolExecutor:
    """The tools that `options` names, and `submit_answer`.

    Raises:
        InvalidOption: a tool lacks what it needs (search_url, mcp).
        NotInstalled, ToolServerFailed: the tools of an MCP server cannot be had.
    """
    tools = [submit_tool()]
    if "search" in options.tool_types:
        tools.insert(0, search_tool(options))
    if "python" in options.tool_types:
        tools.insert(0, python_tool(options))
    if "mcp" not in options.tool_types:
        return AsyncToolExecutor(tools)
    return MCPToolExecutor(mcp_server(options.mcp), tools)


def submit_tool() -> Tool:
    """``submit_answer(answer)``; the environment judges what was submitted."""

    def submit_answer(answer: str) -> str:
        """Give the final answer, which ends the episode.

        Args:
            answer: the answer alone.
        """
        return "The answer was submitted."

    return Tool.from_callable(submit_answer, terminal=True)


def python_tool(options: QuestionOptions) -> Tool:
    """``python(code)``, with limits that hold. Nothing is kept from call to call, as in the upstream."""
    limit = options.python_time_limit

    def python(code: str) -> str:
        """Run a Python program and get what it prints.

        Args:
            code: a complete program with its imports; results must be printed.
        """
        result = run_program(code, time_limit=limit, memory_limit=options.python_memory_limit)
        parts = [result.stdout, result.stderr]
        if result.timed_out:
            parts.append(f"Execution timed out after {limit:g} seconds.")
        said = "Code execution result: " + "\n".join(part for part in parts if part).lstrip(" \n")
        if not result.ok:
            raise ToolFailed(said)
        return f"{said}\n" if not said.endswith("\n") else said

    # a program that fails over a missing import is run twice
    return Tool.from_callable(python, timeout=2 * limit + 10)


def search_tool(options: QuestionOptions) -> Tool:
    """``search(query)`` by the upstream's own client of a retrieval server."""
    url = options.search_url or os.environ.get("SEARCH_URL")
    if not url:
        problem = "is needed by the tool search: the address of a retrieval server (or set SEARCH_URL)"
        raise InvalidOption("search_url", options.search_url, problem)
    client = module("gem.tools.search_tool").SearchTool(
        search_url=url, topk=options.search_topk, timeout=options.search_time_limit
    )

    def search(query: str) -> str:
        """Search for documents.

        Args:
            query: what to look for.
        """
        found: str = client._search(query)
        if found.startswith(_SEARCH_FAILED):
            raise ToolFailed(found)
        return f"<information>{found}</information>"

    return Tool.from_callable(search, timeout=options.search_time_limit + 10)


def mcp_server(given: Any) -> HttpServer | StdioServer:
    """The server that the option `mcp` describes.

    Raises:
        InvalidOption: it describes none.
    """
    valid = 'a URL, {"url": ..., "headers": {...}} or {"command": ..., "args": [...], "env": {...}, "cwd": ...}'
    if given is None:
        raise InvalidOption("mcp", None, "is needed by the tools mcp", valid=valid)
    if isinstance(given, str):
        return HttpServer(given)
    if isinstance(given, Mapping) and set(given) == {"mcpServers"}:
        servers = given["mcpServers"]
        if not isinstance(servers, Mapping) or len(servers) != 1:
            raise InvalidOption("mcp.mcpServers", servers, "must hold exactly one server")
        given = next(iter(servers.values()))
    fields: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
    if isinstance(fields.get("url"), str) and set(fields) <= {"url", "headers"}:
        return HttpServer(fields["url"], dict(fields.get("headers") or {}))
    command = fields.get("command")
    if isinstance(command, str | list | tuple) and set(fields) <= {"command", "args", "env", "cwd"}:
        program = [command] if isinstance(command, str) else [*command]
        line = tuple(str(each) for each in [*program, *(fields.get("args") or ())])
        return StdioServer(line, dict(fields.get("env") or {}), fields.get("cwd"))
    raise InvalidOption("mcp", given, "describes no server", valid=valid)


class BudgetedExecutor(ToolExecutor):
    """Another executor's tools, of which so many calls are run in an episode.

    Args:
        executor: runs the calls; closed with this one.
        used: how many calls were run so far, by the hidden state.
        most: calls at most, those of `submit_answer` not counted; None for no limit.
    """

    def __init__(self, executor: ToolExecutor, used: Callable[[Any], int], most: int | None) -> None:
        super().__init__(executor.tools, max_characters=executor.max_characters)
        self._executor, self._used, self._most = executor, used, most

    def counts(self, call: ToolCall) -> bool:
        """Whether `call` is one of those that are limited: of a tool that exists, other than `submit_answer`."""
        return call.name in self._tools and call.name != SUBMIT

    def execute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """See `ToolExecutor.execute`; calls beyond the limit are answered by an error."""
        if self._most is None:
            return self._executor.execute(calls, hidden)
        left = self._most - self._used(hidden)
        run: list[ToolCall] = []
        refused: set[str] = set()
        for call in calls:
            if self.counts(call):
                left -= 1
                if left < 0:
                    refused.add(call.id)
                    continue
            run.append(call)
        done = self._executor.execute(run, hidden)
        results = {result.call_id: result for result in done.results}
        for call in calls:
            if call.id in refused:
                results[call.id] = ToolResult(call.id, USED_UP, ToolStatus.ERROR, call.name)
        return Execution(tuple(results[call.id] for call in calls), done.hidden, done.ended_by)

    def close(self) -> None:
        """Close the other executor."""
        self._executor.close()
