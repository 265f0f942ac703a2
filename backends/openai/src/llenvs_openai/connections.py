"""Connections that are found at once.

The HTTP library's pool looks at every connection that it holds for each request that comes and goes: with 64 in
flight that is a fifth of the processor time of a request. Here each request in flight has a connection of its own,
and the next one takes that which became free last.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from urllib.request import getproxies

import httpx2


def http_client(base_url: str, timeout: float | None) -> httpx2.AsyncClient:
    """A client for the SDK, to be closed by it."""
    from openai import DefaultAsyncHttpxClient

    if getproxies():  # the library finds them by itself, with its own pool
        return DefaultAsyncHttpxClient(timeout=timeout)
    return DefaultAsyncHttpxClient(
        timeout=timeout, transport=FreeConnections(is_https=base_url.startswith("https"))
    )


class FreeConnections(httpx2.AsyncBaseTransport):
    """As many connections as there are requests in flight; the caller bounds these.

    Args:
        is_https: whether certificates will have to be verified (loading them takes 20 ms).
    """

    def __init__(self, *, is_https: bool) -> None:
        self._verify = httpx2.create_ssl_context() if is_https else False
        self._free: list[httpx2.AsyncHTTPTransport] = []
        self._all: list[httpx2.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` over a connection that is free, or a new one."""
        connection = self._free.pop() if self._free else self._open()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._free.append(connection)  # it reconnects
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # of an asynchronous transport
        response.stream = _Answer(response.stream, lambda: self._free.append(connection))
        return response

    async def aclose(self) -> None:
        """Close them all."""
        for connection in self._all:
            await connection.aclose()

    def _open(self) -> httpx2.AsyncHTTPTransport:
        connection = httpx2.AsyncHTTPTransport(verify=self._verify)
        self._all.append(connection)
        return connection


class _Answer(httpx2.AsyncByteStream):
    """Gives the connection back when the answer was read."""

    def __init__(self, stream: httpx2.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._stream = stream
        self._give_back: Callable[[], None] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        try:
            await self._stream.aclose()
        finally:
            if give_back is not None:
                give_back()
