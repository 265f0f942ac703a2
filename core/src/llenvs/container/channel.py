"""The client's end of the channel: one WebSocket to a server, many requests in flight, answers matched by id.

A channel belongs to the event loop that opened it.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from llenvs.container.errors import ConnectionLost, NotSent, RequestRefused, RequestTimedOut, error_from_wire
from llenvs.container.frames import JsonFrames
from llenvs.container.runtimes.endpoint import Endpoint
from llenvs.core.errors import InvalidOption, LLEnvsError

_OPEN_TIMEOUT = 10.0


class Channel(JsonFrames):
    """An open channel; made by `Channel.open`."""

    def __init__(self, endpoint: Endpoint, uri: str) -> None:
        super().__init__(ClientProtocol(parse_uri(uri), max_size=None), asyncio.get_running_loop())
        self._endpoint = endpoint
        self._opened: asyncio.Future[None] = self.loop.create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._deadlines: dict[int, tuple[float, float]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._last_id = 0
        self._lost: LLEnvsError | None = None
        self._keeper = self.loop.create_task(self._keep())

    @classmethod
    async def open(cls, endpoint: Endpoint) -> Channel:
        """Connect to `endpoint`.

        Raises:
            ConnectionLost: nobody answers there.
            RequestRefused: the server wants a token, or another one.
        """
        loop = asyncio.get_running_loop()
        kind, where, uri = _target(endpoint.address)
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                channel: Channel
                if kind == "unix":
                    _, channel = await loop.create_unix_connection(lambda: cls(endpoint, uri), where)
                else:
                    secure = ssl.create_default_context() if uri.startswith("wss") else None
                    port = urlsplit(uri).port or 0
                    _, channel = await loop.create_connection(lambda: cls(endpoint, uri), where, port, ssl=secure)
                try:
                    await channel._opened
                except BaseException:
                    channel.close()
                    raise
        except TimeoutError:
            raise ConnectionLost(f"{endpoint.address}: no answer within {_OPEN_TIMEOUT:g} s") from None
        except OSError as error:
            raise ConnectionLost(f"{endpoint.address}: {error}") from None
        return channel

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._lost is None

    async def request(self, fields: str, timeout: float | None = None) -> Any:
        """Send one request and wait for its answer.

        Args:
            fields: ``"op":...`` and the rest of the request as JSON text, without the braces.
            timeout: seconds, None for no limit.

        Raises:
            ConnectionLost: the connection broke before the answer came.
            RequestTimedOut: no answer in time.
            LLEnvsError: what the server answered, as itself.
        """
        if self._lost is None and not self._writable.is_set():
            await self._writable.wait()
        if self._lost is not None:
            raise (NotSent if isinstance(self._lost, ConnectionLost) else type(self._lost))(str(self._lost))
        self._last_id = number = self._last_id + 1
        future: asyncio.Future[Any] = self.loop.create_future()
        self._pending[number] = future
        self.send(f'{{"id":{number},{fields}}}')
        if timeout is not None:
            self._deadlines[number] = (self.loop.time() + timeout, timeout)
            if self._sweep is None:
                self._sweep = self.loop.call_later(timeout, self._expire)
        try:
            return await future
        finally:
            self._pending.pop(number, None)
            self._deadlines.pop(number, None)

    def close(self) -> None:
        """Close the connection; requests in flight fail with `ConnectionLost`."""
        self.broken("the connection was closed")

    def _expire(self) -> None:
        """End the requests whose time is up; one timer for all of them costs each of them nothing."""
        self._sweep = None
        now, nearest = self.loop.time(), None
        for number, (deadline, timeout) in self._deadlines.items():
            future = self._pending[number]
            if deadline > now:
                nearest = deadline if nearest is None else min(nearest, deadline)
            elif not future.done():
                future.set_exception(RequestTimedOut(f"{self._endpoint.address}: no answer within {timeout:g} s"))
        if nearest is not None:
            self._sweep = self.loop.call_at(nearest, self._expire)

    async def _keep(self) -> None:
        # a loop that ends cancels its tasks, so this one closes what would be left open
        try:
            await asyncio.Event().wait()
        finally:
            self._fail(ConnectionLost(f"{self._endpoint.address}: the event loop ended"))
            if self.transport is not None:
                self.transport.abort()

    # -- JsonFrames ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        super().connection_made(transport)
        assert isinstance(self.websocket, ClientProtocol)
        request = self.websocket.connect()
        if self._endpoint.token is not None:
            request.headers["Authorization"] = f"Bearer {self._endpoint.token}"
        self.websocket.send_request(request)
        self.write()

    def handshake(self, event: Any) -> None:
        """The server's answer to the handshake."""
        error = self.websocket.handshake_exc
        if error is None:
            if not self._opened.done():
                self._opened.set_result(None)
        elif event.status_code in (401, 403, 404):
            said = bytes(event.body or b"").decode("utf-8", "replace").strip()[:300]
            self._fail(
                RequestRefused(f"{self._endpoint.address}: refused with status {event.status_code}: {said}")
            )
        else:
            self.broken(str(error))

    def received(self, data: Any) -> None:
        """Answers came."""
        try:
            for answer in data if isinstance(data, list) else (data,):
                future = self._pending.get(answer["id"])
                if future is None or future.done():
                    continue  # given up on
                if "ok" in answer:
                    future.set_result(answer["ok"])
                else:
                    future.set_exception(error_from_wire(answer.get("error")))
        except (TypeError, KeyError, AttributeError) as error:
            self.broken(f"an answer that makes no sense: {error!r}")

    def broken(self, reason: str) -> None:
        """The connection is of no use any more."""
        self._fail(ConnectionLost(f"{self._endpoint.address}: {reason}"))
        self._keeper.cancel()

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The transport's buffer has room again."""
        self._writable.set()

    def _fail(self, error: LLEnvsError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        self._writable.set()
        if self._sweep is not None:
            self._sweep.cancel()
        for future in (self._opened, *self._pending.values()):
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever waited may be gone; nobody needs to be told then


def _target(address: str) -> tuple[str, str, str]:
    """("unix" or "tcp", path or host, WebSocket address) of an endpoint's address."""
    if address.startswith("unix://"):
        return "unix", address.removeprefix("unix://"), "ws://localhost/channel"
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidOption("url", address, "is no address", valid="http(s)://host:port or unix:///path")
    scheme = "wss" if parts.scheme == "https" else "ws"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port or (443 if scheme == "wss" else 80)
    return "tcp", parts.hostname, f"{scheme}://{host}:{port}{parts.path.rstrip('/')}/channel"
