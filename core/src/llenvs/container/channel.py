"""The channel: one WebSocket to a server, many requests in flight, answers matched by id.

Requests made in one turn of the event loop leave as one frame. A channel belongs to the loop that opened it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from llenvs.container.errors import ConnectionLost, RequestRefused, RequestTimedOut, error_from_wire
from llenvs.container.runtimes.endpoint import Endpoint
from llenvs.core.errors import InvalidOption, LLEnvsError

_MESSAGE = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
_FRAME_LIMIT = 1 << 20  # characters of the requests put into one frame
_OPEN_TIMEOUT = 10.0


class Channel(asyncio.Protocol):
    """An open channel; made by `Channel.open`."""

    def __init__(self, endpoint: Endpoint, uri: str) -> None:
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._websocket = ClientProtocol(parse_uri(uri), max_size=None)
        self._transport: asyncio.Transport | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._outgoing: list[str] = []
        self._fragments: list[bytes] = []
        self._last_id = 0
        self._keeper = self._loop.create_task(self._keep())
        self._lost: LLEnvsError | None = None

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

    @property
    def in_flight(self) -> int:
        """Requests without an answer yet."""
        return len(self._pending)

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
            raise type(self._lost)(str(self._lost))
        self._last_id = number = self._last_id + 1
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending[number] = future
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(f'{{"id":{number},{fields}}}')
        timer = self._loop.call_later(timeout, self._expire, number, timeout) if timeout is not None else None
        try:
            return await future
        finally:
            self._pending.pop(number, None)
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Close the connection; requests in flight fail with `ConnectionLost`."""
        self._fail(ConnectionLost(f"{self._endpoint.address}: the connection was closed"))
        self._keeper.cancel()

    async def _keep(self) -> None:
        # a loop that ends cancels its tasks, so this one closes what would be left open
        try:
            await asyncio.Event().wait()
        finally:
            self._fail(ConnectionLost(f"{self._endpoint.address}: the event loop ended"))
            if self._transport is not None:
                self._transport.abort()

    # -- outgoing -----------------------------------------------------------------------------------------

    def _flush(self) -> None:
        batch: list[str] = []
        size = 0
        waiting, self._outgoing = self._outgoing, []
        if self._lost is not None:
            return
        for text in waiting:
            if batch and size + len(text) > _FRAME_LIMIT:
                self._send(batch)
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        self._send(batch)

    def _send(self, batch: list[str]) -> None:
        text = batch[0] if len(batch) == 1 else f"[{','.join(batch)}]"
        self._websocket.send_text(text.encode("ascii"))
        self._write()

    def _write(self) -> None:
        assert self._transport is not None
        for data in self._websocket.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()

    def _expire(self, number: int, timeout: float) -> None:
        future = self._pending.get(number)
        if future is not None and not future.done():
            future.set_exception(RequestTimedOut(f"{self._endpoint.address}: no answer within {timeout:g} s"))

    # -- asyncio.Protocol ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        request = self._websocket.connect()
        if self._endpoint.token is not None:
            request.headers["Authorization"] = f"Bearer {self._endpoint.token}"
        self._websocket.send_request(request)
        self._write()

    def data_received(self, data: bytes) -> None:
        """Hand what came to whoever waits for it."""
        self._websocket.receive_data(data)
        for event in self._websocket.events_received():
            if isinstance(event, Response):
                self._handshake_answered(event)
            elif isinstance(event, Frame) and event.opcode in _MESSAGE:
                self._fragments.append(bytes(event.data))
                if event.fin:
                    message, self._fragments = b"".join(self._fragments), []
                    self._answered(message)
        self._write()
        if self._websocket.parser_exc is not None:
            self._break(f"{self._websocket.parser_exc}")

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The transport's buffer has room again."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        reason = f": {exc}" if exc is not None else ""
        self._break(f"the server closed the connection{reason}")

    # -- incoming -----------------------------------------------------------------------------------------

    def _handshake_answered(self, response: Any) -> None:
        error = self._websocket.handshake_exc
        if error is None:
            if not self._opened.done():
                self._opened.set_result(None)
        elif response.status_code in (401, 403, 404):
            said = bytes(response.body or b"").decode("utf-8", "replace").strip()[:300]
            self._fail(
                RequestRefused(f"{self._endpoint.address}: refused with status {response.status_code}: {said}")
            )
        else:
            self._fail(ConnectionLost(f"{self._endpoint.address}: {error}"))

    def _answered(self, message: bytes) -> None:
        try:
            answers = json.loads(message)
            for answer in answers if isinstance(answers, list) else (answers,):
                future = self._pending.get(answer["id"])
                if future is None or future.done():
                    continue  # given up on
                if "ok" in answer:
                    future.set_result(answer["ok"])
                else:
                    future.set_exception(error_from_wire(answer.get("error")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._break(f"an answer that makes no sense: {error!r}")

    def _break(self, reason: str) -> None:
        self._fail(ConnectionLost(f"{self._endpoint.address}: {reason}"))
        self._keeper.cancel()

    def _fail(self, error: LLEnvsError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        self._writable.set()
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
