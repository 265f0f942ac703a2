"""The harness: a chat loop in this process, instead of a program in a process of its own.

It does what the upstream's `null` harness does (ask the model, run the tools that it calls, until it calls none),
over the same interception server, so limits, stops, tools and hooks are the upstream's own.
"""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from types import ModuleType
from typing import Any

import aiohttp
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harness import Harness
from verifiers.v1.harnesses.utils.compaction import bound_tool_message
from verifiers.v1.harnesses.utils.mcp import connect_mcp, mcp_content_to_chat_content
from verifiers.v1.runtimes import ProgramResult, Runtime
from verifiers.v1.task import TaskData
from verifiers.v1.trace import Trace

from llenvs.core.tools.call import ToolStatus

ID = "llenvs_relay"
"""Id of the harness, and the name of the module under which the upstream finds it."""

_CONNECTING = 60.0  # seconds to list the tools of all servers, as the upstream's harness has it
tool_statuses: dict[str, dict[str, ToolStatus]] = {}
"""How the tool calls of a rollout ended: by the id of its trace, then by the id of the call."""


class RelayHarness(Harness[HarnessConfig]):
    """A chat loop with MCP tools that can be resumed; it executes nothing itself."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    SUPPORTS_TOOL_INTERCEPTION = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: Trace[Any, Any, Any],
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: TaskData,
        tool_interception_url: str | None = None,
    ) -> ProgramResult:
        """See the upstream."""
        try:
            return await self._conversed(ctx, trace, endpoint, secret, mcp_urls, data, tool_interception_url)
        except ExceptionGroup as group:  # from the clients of tool servers; its own words tell nothing
            raise _first_in(group) from group

    async def _conversed(
        self,
        ctx: ModelContext,
        trace: Trace[Any, Any, Any],
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: TaskData,
        tool_interception_url: str | None,
    ) -> ProgramResult:
        system, prompt = self.resolve_prompt(data)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        async with AsyncExitStack() as stack:
            headers = {"Authorization": f"Bearer {secret}"}
            limit = aiohttp.ClientTimeout(total=None)
            http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers, timeout=limit))
            tools = await _Tools.connect(mcp_urls, self.config.tool_timeout, stack)
            body: dict[str, Any] = {"model": ctx.model}
            if tools.schemas:
                body["tools"] = tools.schemas
            statuses = tool_statuses.setdefault(trace.id, {})
            while True:
                answer = await _post(http, f"{endpoint}/chat/completions", {**body, "messages": messages})
                message = answer["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    return ProgramResult(exit_code=0, stdout="", stderr="")
                for call in message["tool_calls"]:
                    shown = await _gated(http, tool_interception_url, call)
                    if shown is None:
                        content, statuses[call["id"]] = await tools.call(call["function"])
                        shown = {
                            "role": "tool",
                            "tool_call_id": call["id"],
                            "content": content,
                            "name": call["function"]["name"],
                        }
                    messages.append(bound_tool_message(shown))


class _Tools:
    """The MCP tools of one rollout."""

    def __init__(self, schemas: list[dict[str, Any]], dispatch: dict[str, tuple[str, str]], servers: Any) -> None:
        self.schemas, self._dispatch, self._servers = schemas, dispatch, servers

    @classmethod
    async def connect(cls, urls: dict[str, str], time_limit: float, stack: AsyncExitStack) -> _Tools:
        if not urls:
            return cls([], {}, {})
        import asyncio

        config = {"mcpServers": {name: {"url": url, "timeout": time_limit} for name, url in urls.items()}}
        return cls(*await asyncio.wait_for(connect_mcp(config, stack), _CONNECTING))

    async def call(self, function: dict[str, Any]) -> tuple[Any, ToolStatus]:
        """What the model reads, in the words of the upstream's harness, and how the call ended."""
        name = function["name"]
        try:
            arguments = json.loads(function["arguments"] or "{}")
        except json.JSONDecodeError as error:
            said = f"error: invalid JSON in tool arguments ({error}); resend the call with valid JSON"
            return said, ToolStatus.INVALID_ARGUMENTS
        if not isinstance(arguments, dict):
            kind = type(arguments).__name__
            said = f"error: tool arguments must be a JSON object, got {kind}; resend as an object"
            return said, ToolStatus.INVALID_ARGUMENTS
        if name not in self._dispatch:
            return f"error: unknown tool {name!r}", ToolStatus.UNKNOWN_TOOL
        server, raw = self._dispatch[name]
        result = await self._servers[server].run(lambda client: client.call_tool(raw, arguments))
        content = mcp_content_to_chat_content(result.content)
        if not result.is_error:
            return content, ToolStatus.SUCCESS
        invalid = isinstance(content, str) and "validation error" in content  # pydantic's words for arguments
        return content, ToolStatus.INVALID_ARGUMENTS if invalid else ToolStatus.ERROR


def _first_in(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first_in(first) if isinstance(first, ExceptionGroup) else first


async def _post(http: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Any:
    async with http.post(url, json=body) as response:
        answer = await response.json()
        if response.status >= 400:  # a limit or a stop of the upstream; it tells by its own record
            raise RuntimeError(f"the interception server answered {response.status}: {answer}")
        return answer


async def _gated(http: aiohttp.ClientSession, url: str | None, call: dict[str, Any]) -> dict[str, Any] | None:
    """What the task's hooks answer in place of a call; None when it may run."""
    if not url:
        return None
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except json.JSONDecodeError:
        arguments = function["arguments"]
    asked = {"tool_call_id": call["id"], "name": function["name"], "arguments": arguments}
    decision = await _post(http, url, asked)
    if decision["action"] == "stop":
        raise RuntimeError(str(decision["reason"]))
    return dict(decision["message"]) if decision["action"] == "deny" else None


def register() -> None:
    """Let the upstream find the harness by its id: it imports the module of that name."""
    if ID not in sys.modules:
        from importlib.machinery import ModuleSpec

        module = ModuleType(ID, "The harness of LLEnvs, as the upstream looks for it.")
        module.__spec__ = ModuleSpec(ID, None)
        module.__dict__.update(RelayHarness=RelayHarness, __all__=["RelayHarness"])
        sys.modules[ID] = module
