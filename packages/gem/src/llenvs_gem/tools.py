"""The tools that a model may use before it answers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
from llenvs_gem.options import ToolOptions
from llenvs_gem.program import run_program
from llenvs_gem.upstream import module

SUBMIT = "submit_answer"
"""The tool that ends an episode."""
USED_UP = "Error: no tool calls are left. Give the final answer."
LAST_USE = "That was the last tool call. Give the final answer."
_SEARCH_FAILED = "[SearchTool Error"  # begins what the upstream's tool says when it cannot search


def make_executor(options: ToolOptions) -> ToolExecutor:
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


def python_tool(options: ToolOptions) -> Tool:
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


def search_tool(options: ToolOptions) -> Tool:
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


class Spent(NamedTuple):
    """What the calls of one action cost and earned.

    Attributes:
        uses: calls taken so far, these included.
        reward: what these earned.
        last: whether none are left since these.
    """

    uses: int
    reward: float
    last: bool


class BudgetedExecutor(ToolExecutor):
    """Another executor's tools, of which so many calls are taken in an episode.

    The hidden state must be a mapping with ``tool_uses``, the number of calls taken so far.

    Args:
        executor: runs the calls; closed with this one.
        options: how many calls there are, and what each earns.
    """

    def __init__(self, executor: ToolExecutor, options: ToolOptions) -> None:
        super().__init__(executor.tools, max_characters=executor.max_characters)
        self._executor = executor
        self._most = options.max_tool_uses
        self._each, self._success = options.tool_reward, options.tool_success_reward

    def is_used_up(self, uses: int) -> bool:
        """Whether no call is left after so many."""
        return self._most is not None and uses >= self._most

    def execute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """See `ToolExecutor.execute`; calls beyond the limit are answered by an error."""
        taken, refused = self._divided(calls, hidden["tool_uses"])
        done = self._executor.execute(taken, hidden)
        results = {result.call_id: result for result in done.results}
        for call in refused:
            results[call.id] = ToolResult(call.id, USED_UP, ToolStatus.ERROR, call.name)
        return Execution(tuple(results[call.id] for call in calls), done.hidden, done.ended_by)

    def spent(self, calls: Sequence[ToolCall], results: Sequence[ToolResult], uses: int) -> Spent:
        """What `calls` with these results cost and earned, after `uses` calls before.

        Those of `submit_answer` do neither; those that could not be run (no such tool, wrong arguments) earn
        nothing.
        """
        taken, _ = self._divided(calls, uses)
        by_id = {result.call_id: result for result in results}
        counted = [by_id[call.id] for call in taken if call.name != SUBMIT]
        ran = [result for result in counted if result.is_valid_call]
        reward = self._each * len(ran) + self._success * sum(result.ok for result in ran)
        after = uses + len(counted)
        return Spent(after, reward, bool(counted) and self.is_used_up(after))

    def close(self) -> None:
        """Close the other executor."""
        self._executor.close()

    def _divided(self, calls: Sequence[ToolCall], uses: int) -> tuple[list[ToolCall], list[ToolCall]]:
        """The calls that are taken, and those that are not."""
        taken: list[ToolCall] = []
        refused: list[ToolCall] = []
        for call in calls:
            limited = call.name != SUBMIT
            if limited and self.is_used_up(uses):
                refused.append(call)
                continue
            uses += limited
            taken.append(call)
        return taken, refused
