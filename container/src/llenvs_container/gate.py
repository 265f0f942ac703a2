"""Who may come in: the bearer token, and no web page that a browser on this machine shows."""

from __future__ import annotations

import hmac
import json
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from llenvs.container.errors import RequestRefused, error_to_wire

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
OPEN_PATHS = frozenset({"/health"})
"""Answered without a token."""


class Gate:
    """ASGI middleware that answers 401 to whoever lacks the token.

    Without a token the server is for this machine alone; then requests that come from a web page (an ``Origin``
    header) or under another host name (DNS rebinding) get 403.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._expected is not None:
            # compared in constant time, so that the time taken tells nothing about the token
            if hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
                await self._app(scope, receive, send)
            else:
                await _refuse(scope, send, 401, "this server wants the header 'Authorization: Bearer <token>'")
        elif b"origin" in headers:
            await _refuse(scope, send, 403, "requests of web pages are refused by a server without a token")
        elif not _is_local(headers.get(b"host", b"")):
            await _refuse(scope, send, 403, "without a token this server answers to localhost alone")
        else:
            await self._app(scope, receive, send)


def _is_local(host: bytes) -> bool:
    try:
        return urlsplit("//" + host.decode("ascii")).hostname in _LOCAL
    except ValueError:
        return False


async def _refuse(scope: Scope, send: Send, status: int, problem: str) -> None:
    body = json.dumps({"error": error_to_wire(RequestRefused(problem))}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
