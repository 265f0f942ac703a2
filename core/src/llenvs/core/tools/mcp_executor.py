"""Tools that a server of the Model Context Protocol offers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llenvs.core.errors import InvalidOption
from llenvs.core.tools.async_executor import AsyncToolExecutor
from llenvs.core.tools.definition import ToolDefinition
from llenvs.core.tools.errors import ToolFailed
from llenvs.core.tools.executor import MAX_CHARACTERS
from llenvs.core.tools.mcp_server import HttpServer, ServerConnection, StdioServer
from llenvs.core.tools.tool import Tool, make_tools

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


class MCPToolExecutor(AsyncToolExecutor):
    """Runs calls on an MCP server (needs the extra ``llenvs[mcp]``).

    The server is asked for its tools when the executor is made. One that dies is started or connected to again
    with the next call; the call it died in has an error as its result and is not repeated, as it may have had
    effects. What a server does is not part of a state: an environment over a server that remembers things keeps
    the promise of a stateless step only as far as the server's tools are functions of their arguments.

    Args:
        server: a `StdioServer`, an `HttpServer`, or the URL of the latter.
        tools: functions and `Tool` objects offered beside the server's.
        include: names of the server's tools to offer; None for all.
        terminal: names of the server's tools that end an episode.
        connect_timeout: seconds for starting the server and agreeing on the protocol.
        timeout: see `AsyncToolExecutor`.
        max_concurrency: see `AsyncToolExecutor`.
        max_characters: see `AsyncToolExecutor`.

    Raises:
        NotInstalled: the SDK is missing.
        ToolServerFailed: the server does not start or answer; with the end of what it wrote.
        InvalidOption: `include` or `terminal` names a tool that the server lacks, or a name occurs twice.
    """

    def __init__(
        self,
        server: StdioServer | HttpServer | str,
        tools: Iterable[Any] = (),
        *,
        include: Iterable[str] | None = None,
        terminal: Iterable[str] = (),
        connect_timeout: float = 30.0,
        timeout: float | None = 60.0,
        max_concurrency: int = 32,
        max_characters: int | None = MAX_CHARACTERS,
    ) -> None:
        self.connection = ServerConnection(
            HttpServer(server) if isinstance(server, str) else server, connect_timeout
        )
        try:
            offered = {tool.name: tool for tool in self.connection.list_tools()}
            terminal = tuple(terminal)
            wanted = tuple(offered) if include is None else tuple(include)
            for field, names in (("include", wanted), ("terminal", terminal)):
                for name in names:
                    if name not in offered:
                        raise InvalidOption(field, name, "the server has no such tool", valid=", ".join(offered))
            remote = [
                Tool(
                    ToolDefinition(name, offered[name].description or "", offered[name].input_schema),
                    _RemoteTool(self.connection, name),
                    terminal=name in terminal,
                )
                for name in wanted
            ]
            super().__init__(
                [*remote, *make_tools(tools)],
                timeout=timeout,
                max_concurrency=max_concurrency,
                max_characters=max_characters,
            )
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        """End the session, and the server if it is ours."""
        self.connection.close()


class _RemoteTool:
    """The function behind a server's tool."""

    def __init__(self, connection: ServerConnection, name: str) -> None:
        self._connection = connection
        self._name = name

    async def __call__(self, /, **arguments: Any) -> str:
        result = await self._connection.call(self._name, arguments)
        text = _text(result)
        if result.is_error:
            raise ToolFailed(text)
        return text


def _text(result: CallToolResult) -> str:
    """The content as text; of what is no text, a note that it is there."""
    return "\n".join(_block(block) for block in result.content)


def _block(block: ContentBlock) -> str:
    if block.type == "text":
        text: str = block.text
        return text
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    if block.type == "resource":
        content = block.resource
        return getattr(content, "text", None) or f"[{content.mime_type or 'binary'} resource {content.uri}]"
    return f"[{block.type} of type {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
