"""JSON objects over a WebSocket, for both ends of the channel.

Built on the protocol state machine of the library `websockets` (its "sans-I/O" layer): a step crosses the event
loop as seldom as can be, which is much of what a round trip costs.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from typing import Any

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol

_MESSAGE = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
_CLOSELY = 100e-6  # seconds; a round trip takes longer
_FRAME_LIMIT = 1 << 20  # characters of the objects put into one frame


class JsonFrames(asyncio.Protocol, ABC):
    """One connection: what comes is handed on as JSON data, what goes is bundled.

    An object leaves at once when none left just before; those that follow closely leave as one list at the end of
    the turn of the event loop: no wait when there is little to say, few frames when there is much.
    """

    def __init__(self, websocket: ClientProtocol | ServerProtocol, loop: asyncio.AbstractEventLoop) -> None:
        self.websocket = websocket
        self.loop = loop
        self.transport: asyncio.Transport | None = None
        self._outgoing: list[str] = []
        self._last_sent = 0.0
        self._fragments: list[bytes] = []

    # -- for subclasses -----------------------------------------------------------------------------------

    @abstractmethod
    def handshake(self, event: Any) -> None:
        """The other side's half of the opening handshake came."""

    @abstractmethod
    def received(self, data: Any) -> None:
        """A frame came: one object, or a list of them."""

    @abstractmethod
    def broken(self, reason: str) -> None:
        """The connection is gone, or what came makes no sense. May be called again."""

    def send(self, text: str) -> None:
        """Send an object, given as JSON text."""
        now = time.perf_counter()
        if self._outgoing:
            self._outgoing.append(text)
        elif now - self._last_sent < _CLOSELY:
            self._outgoing.append(text)
            self.loop.call_soon(self._flush)
        else:
            self._last_sent = now
            self._send_frame(text)

    def write(self) -> None:
        """Hand to the transport what the protocol wants to say."""
        if self.transport is None:
            return
        for data in self.websocket.data_to_send():
            if data:
                self.transport.write(data)
            else:
                self.transport.close()

    def _flush(self) -> None:
        self._last_sent = time.perf_counter()
        waiting, self._outgoing = self._outgoing, []
        if self.transport is None or self.transport.is_closing():
            return
        batch: list[str] = []
        size = 0
        for text in waiting:
            if batch and size + len(text) > _FRAME_LIMIT:
                self._send_frame(f"[{','.join(batch)}]")
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        self._send_frame(batch[0] if len(batch) == 1 else f"[{','.join(batch)}]")

    def _send_frame(self, text: str) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.websocket.send_text(text.encode("ascii"))
            self.write()

    # -- asyncio.Protocol ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self.websocket.receive_data(data)
        for event in self.websocket.events_received():
            if not isinstance(event, Frame):
                self.handshake(event)
            elif event.opcode in _MESSAGE:
                if event.fin and not self._fragments:
                    self._message(event.data)
                else:
                    self._fragments.append(bytes(event.data))
                    if event.fin:
                        message, self._fragments = b"".join(self._fragments), []
                        self._message(message)
        self.write()
        if self.websocket.parser_exc is not None:
            self.broken(str(self.websocket.parser_exc))

    def _message(self, message: bytes | bytearray | memoryview) -> None:
        try:
            data = json.loads(bytes(message).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            self.no_json(str(error)[:200])
            return
        self.received(data)

    def no_json(self, problem: str) -> None:
        """A frame that is no JSON came."""
        self.broken(f"no JSON: {problem}")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.broken("the other side closed the connection" if exc is None else str(exc))
