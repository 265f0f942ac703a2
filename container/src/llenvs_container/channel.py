"""The server's end of the channel: frames of requests in, frames of answers out, in the order they are ready."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar, cast

from uvicorn.config import Config
from uvicorn.server import ServerState
from websockets.http11 import Request
from websockets.server import ServerProtocol

from llenvs.container.errors import RequestRefused
from llenvs.container.frames import JsonFrames
from llenvs.core.errors import LLEnvsError
from llenvs_container.dispatcher import Dispatcher
from llenvs_container.gate import Gatekeeper
from llenvs_container.requests import BATCH_LIMIT
from llenvs_container.service import error_outcome

PATH = "/channel"

_UNSENT_LIMIT = 16 << 20
"""Bytes of answers that a client has not taken; past them its requests are not read."""
_OUTSTANDING_LIMIT = 2 * BATCH_LIMIT
"""Requests of one connection without an answer; past them no more are read."""


class ServerChannel(JsonFrames):
    """One connection; uvicorn makes it when a request asks for a WebSocket. Make the class with `serving`."""

    dispatcher: ClassVar[Dispatcher]
    gatekeeper: ClassVar[Gatekeeper]
    max_request_bytes: ClassVar[int]

    def __init__(self, config: Config, server_state: ServerState, app_state: Any) -> None:
        websocket = ServerProtocol(max_size=self.max_request_bytes)
        super().__init__(websocket, asyncio.get_running_loop())
        self._connections: set[Any] = server_state.connections
        self._outstanding = 0
        self._reading = True

    # -- the connection -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over from the HTTP protocol."""
        super().connection_made(transport)
        cast(asyncio.Transport, transport).set_write_buffer_limits(high=_UNSENT_LIMIT)
        self._connections.add(self)

    def handshake(self, event: Any) -> None:
        """Let the client in, or say why not."""
        assert isinstance(self.websocket, ServerProtocol)
        assert isinstance(event, Request)
        headers = {name.lower().encode(): value.encode("latin-1") for name, value in event.headers.raw_items()}
        refusal = self.gatekeeper.refusal(headers)
        if event.path.partition("?")[0] != PATH:
            response = self.websocket.reject(404, f"the channel is at {PATH}\n")
        elif refusal is not None:
            response = self.websocket.reject(*refusal)
        else:
            response = self.websocket.accept(event)
        self.websocket.send_response(response)
        self.write()

    def broken(self, reason: str) -> None:
        """The client is gone, or broke the protocol."""
        self._connections.discard(self)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def shutdown(self) -> None:
        """The server ends (uvicorn calls this): a proper good-bye."""
        if self.websocket.state.name == "OPEN":
            self.websocket.send_close(1012)
            self.write()
        if self.transport is not None:
            self.transport.close()

    def pause_writing(self) -> None:
        """The client does not take its answers."""
        self._regulate()

    def resume_writing(self) -> None:
        """The client took answers."""
        self._regulate()

    # -- requests -----------------------------------------------------------------------------------------

    def received(self, data: Any) -> None:
        """Requests came."""
        requests = data if isinstance(data, list) else [data]
        if len(requests) > BATCH_LIMIT:
            self._refuse(f"a frame holds at most {BATCH_LIMIT} requests, got {len(requests)}")
            return
        for request in requests:
            number = request.pop("id", None) if isinstance(request, dict) else None
            if type(number) is not int and not (isinstance(number, str) and len(number) <= 64):
                self._refuse("a request is an object with an id (an integer or a short text) and an op")
                continue
            self._outstanding += 1
            self.dispatcher.start(request.pop("op", None), request, Answering(self, number))
        self._regulate()

    def no_json(self, problem: str) -> None:
        """A frame that is no JSON came."""
        self._refuse(f"no JSON: {problem}")

    def answer(self, number: int | str, outcome: str) -> None:
        """Send the outcome of a request."""
        self._outstanding -= 1
        self.send(f'{{"id":{number if type(number) is int else json.dumps(number)},{outcome}}}')
        if not self._reading:
            self._regulate()

    def _refuse(self, problem: str) -> None:
        self.send(f'{{"id":null,{error_outcome(RequestRefused(f"the request is malformed: {problem}"))}}}')

    def _regulate(self) -> None:
        """Read on, or stop reading until answers are made and taken."""
        if self.transport is None or self.transport.is_closing():
            return
        unsent = self.transport.get_write_buffer_size()
        reading = self._outstanding <= _OUTSTANDING_LIMIT and unsent <= _UNSENT_LIMIT
        if reading != self._reading:
            self._reading = reading
            if reading:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()


class Answering:
    """Where the outcome of one request goes."""

    __slots__ = ("_channel", "_number")

    def __init__(self, channel: ServerChannel, number: int | str) -> None:
        self._channel = channel
        self._number = number

    def __call__(self, answer: str | None, error: LLEnvsError | None) -> None:
        """Send it."""
        self._channel.answer(self._number, f'"ok":{answer}' if error is None else error_outcome(error))


def serving(dispatcher: Dispatcher, gatekeeper: Gatekeeper, max_request_bytes: int) -> type[ServerChannel]:
    """The class of channels that `dispatcher` answers (uvicorn takes a class)."""
    attributes = {"dispatcher": dispatcher, "gatekeeper": gatekeeper, "max_request_bytes": max_request_bytes}
    return cast(type[ServerChannel], type("ServingChannel", (ServerChannel,), attributes))
