"""Servers of the Model Context Protocol: how they are reached, and a connection that outlives their crashes."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from llenvs.core.errors import NotInstalled
from llenvs.core.loop import run_sync, shared_loop
from llenvs.core.tools.errors import ToolFailed, ToolServerFailed

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, Tool

T = TypeVar("T")

_LOG_TAIL = 1500  # characters
_STEPS = 25  # of the loop; the way from a closed pipe through the SDK's streams takes about ten
_CLOSING = 10.0  # seconds that a server is given to end


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is started as a child process and spoken to through its standard input and output.

    Attributes:
        command: program and arguments.
        env: environment variables besides PATH, HOME and their like; nothing else is inherited.
        cwd: its working directory.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None

    def __str__(self) -> str:
        return " ".join(self.command)


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is running somewhere, spoken to by the streamable HTTP transport.

    Attributes: `url`, mostly ending in ``/mcp``; `headers` sent with each request.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # they hold keys

    def __str__(self) -> str:
        return self.url


class ServerConnection:
    """A session with one server, begun at first use and begun again after the server died.

    It lives on the process's shared loop, so that it can be used from any loop and thread.

    Args:
        server: how to reach it.
        connect_timeout: seconds for starting it and agreeing on the protocol.
    """

    def __init__(self, server: StdioServer | HttpServer, connect_timeout: float = 30.0) -> None:
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise NotInstalled("the Model Context Protocol SDK", "mcp") from None
        self.server = server
        self.connect_timeout = connect_timeout
        self._session: _Session | None = None
        self._lock: asyncio.Lock | None = None

    def list_tools(self) -> list[Tool]:
        """All tools of the server.

        Raises:
            ToolServerFailed: it does not start or answer; with what it wrote to its standard error.
        """
        return run_sync(self._list_tools())

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool. A server found dead is started again first.

        Raises:
            ToolServerFailed: the server died during the call (which is not repeated: it may have had effects), or
                does not start again.
        """
        return await _on_shared_loop(self._call(tool, dict(arguments)))

    def close(self) -> None:
        """End the session, and the server if it is ours; twice is fine, and a later call begins anew."""
        run_sync(self._drop())

    # -- on the shared loop -------------------------------------------------------------------------------

    async def _list_tools(self) -> list[Tool]:
        session = await self._ready()
        tools: list[Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self.connect_timeout):  # of all pages: there may be no end of them
                while True:
                    page = await session.client.list_tools(cursor=cursor)
                    tools += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        return tools
        except Exception as error:
            await self._drop(session)
            raise session.failed("did not list its tools", error) from error

    async def _call(self, tool: str, arguments: dict[str, Any], *, again: bool = True) -> CallToolResult:
        from mcp import MCPError

        session = await self._ready()
        try:
            return await session.client.call_tool(tool, arguments)
        except MCPError as error:
            if not await session.is_over():
                raise ToolFailed(f"the tool server refused the call: {error.message}") from None
            await self._drop(session)
            if again and session.was_unreachable:  # nothing was sent: a new server may be listening by now
                return await self._call(tool, arguments, again=False)
            raise session.failed(
                f"stopped while running {tool!r} and is started again when needed", error
            ) from None

    async def _ready(self) -> _Session:
        """A session that works, as far as can be told without calling a tool."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._session is not None and await self._session.is_over():
                await self._drop(self._session)
            if self._session is None:
                session = _Session(self.server)
                try:
                    async with asyncio.timeout(self.connect_timeout):
                        await session.begin()
                except Exception as error:
                    await session.end()
                    raise session.failed("did not start", error) from error
                self._session = session
            return self._session

    async def _drop(self, session: _Session | None = None) -> None:
        """End `session`, or the present one."""
        ending = session or self._session
        if ending is self._session:
            self._session = None
        if ending is not None:
            await ending.end()


class _Session:
    """The SDK's client, entered and left in one task as its cancel scopes demand."""

    client: Client

    def __init__(self, server: StdioServer | HttpServer) -> None:
        self._server = server
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._log: TextIO | None = None
        self._entered = False
        self._hung_up = False
        self._tail = ""

    async def begin(self) -> None:
        """Start the server if it is ours, connect, agree on the protocol."""
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(entered))
        await asyncio.wait({self._task, entered}, return_when=asyncio.FIRST_COMPLETED)
        if not entered.done():
            await self._task  # raises what went wrong

    async def is_over(self) -> bool:
        """Whether the server is known to be gone."""
        for _ in range(_STEPS):  # the end may have been read and not yet have come through to us
            await asyncio.sleep(0)
        return self._hung_up or self._task is None or self._task.done()

    async def end(self) -> None:
        """Close the connection; twice is fine."""
        self._stop.set()
        if self._task is not None:
            if not self._entered:  # still starting, and deaf to `_stop`
                self._task.cancel()
            _, pending = await asyncio.wait({self._task}, timeout=_CLOSING)
            if pending:
                self._task.cancel()
                await asyncio.wait(pending, timeout=_CLOSING)
        if self._log is not None and not self._log.closed:
            self._tail = self._read_log()
            self._log.close()

    def failed(self, what: str, error: BaseException) -> ToolServerFailed:
        """The error to raise after `end`, with what the server wrote to its standard error."""
        # when our own limit passed, that is the cause; what the forced end then raised is not
        cause = error if isinstance(error, TimeoutError) else _root(self._ending() or error)
        said = "timed out" if isinstance(cause, TimeoutError) else str(cause) or type(cause).__name__
        return ToolServerFailed(f"the tool server {self._server} {what}: {said}" + self._tail)

    @property
    def was_unreachable(self) -> bool:
        """Whether the connection ended because none could be made (known for HTTP)."""
        return type(_root(self._ending())).__name__ == "ConnectError"

    def _ending(self) -> BaseException | None:
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def _hold(self, entered: asyncio.Future[None]) -> None:
        from mcp import Client

        async with Client(self._transport(), cache=None) as self.client:
            self._entered = True
            entered.set_result(None)
            await self._stop.wait()

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        if isinstance(self._server, HttpServer):
            from httpx2 import AsyncClient, Timeout
            from mcp.client.streamable_http import streamable_http_client

            # a tool may take its time; how long, the executor decides
            http = AsyncClient(headers=dict(self._server.headers), timeout=Timeout(30.0, read=None))
            async with http, streamable_http_client(self._server.url, http_client=http) as streams:
                yield streams
            return

        import anyio
        from mcp import StdioServerParameters, stdio_client

        program, *arguments = self._server.command
        parameters = StdioServerParameters(
            command=program, args=arguments, env=dict(self._server.env), cwd=self._server.cwd
        )
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed in end
        async with stdio_client(parameters, self._log) as (read, write), anyio.create_task_group() as tasks:
            forward, received = anyio.create_memory_object_stream[Any](0)

            async def watch() -> None:
                async with forward:
                    async for message in read:
                        await forward.send(message)
                self._hung_up = True

            tasks.start_soon(watch)
            yield received, write
            tasks.cancel_scope.cancel()

    def _read_log(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        tail = self._log.read()[-_LOG_TAIL:].strip()
        return f"\nthe end of what it wrote:\n{tail}" if tail else ""


def _root(error: BaseException | None) -> BaseException | None:
    """The first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _on_shared_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    loop = shared_loop()
    if asyncio.get_running_loop() is loop:
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))
