"""Connections that say nothing do not pile up: their number is bounded, and the time for a request's head."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn with two limits that it lacks; make one with `limited`.

    A client that connects, or begins a request, and then sends its bytes one by one ("slow loris") is cut off
    after `head_timeout` seconds. Past `max_connections` new connections are closed at once.
    """

    head_timeout: ClassVar[float]
    max_connections: ClassVar[int]
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or close it when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
            return
        self._head_timer = self.loop.call_later(self.head_timeout, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Handle what came and watch the time while no request is in progress."""
        if self._head_timer is None and not self._in_request():
            self._head_timer = self.loop.call_later(self.head_timeout, self._give_up)
        super().data_received(data)
        if self._in_request() or self.transport.get_protocol() is not self:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request may take its time to begin: that is the keep-alive timeout's business."""
        self._stop_timer()
        super().on_response_complete()

    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self._in_request() and self.transport.get_protocol() is self:
            self.transport.abort()


def limited(head_timeout: float, max_connections: int) -> type[PatientProtocol]:
    """The protocol with these limits (uvicorn takes a class)."""
    limits: dict[str, Any] = {"head_timeout": head_timeout, "max_connections": max_connections}
    return cast(type[PatientProtocol], type("LimitedProtocol", (PatientProtocol,), limits))
