"""Who may come in: the bearer token, and no web page that a browser on this machine shows."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from llenvs.container.errors import RequestRefused, error_to_wire

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
OPEN_PATHS = frozenset({"/health"})
"""Answered without a token."""


class Gatekeeper:
    """Checks the headers of requests.

    With a token, a request must show it. Without one the server is for this machine alone; then requests that come
    from a web page (an ``Origin`` header) or under another host name (DNS rebinding) are refused.
    """

    def __init__(self, token: str | None) -> None:
        self._expected = None if token is None else f"Bearer {token}".encode()

    def refusal(self, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        """Status and message for a request with `headers` (lower-case names), None to let it in."""
        if self._expected is not None:
            # compared in constant time, so that the time taken tells nothing about the token
            if hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
                return None
            return 401, "this server wants the header 'Authorization: Bearer <token>'"
        if b"origin" in headers:
            return 403, "requests of web pages are refused by a server without a token"
        if not _is_local(headers.get(b"host", b"")):
            return 403, "without a token this server answers to localhost alone"
        return None


class Gate:
    """ASGI middleware that puts a gatekeeper before an application."""

    def __init__(self, app: ASGIApp, gatekeeper: Gatekeeper) -> None:
        self._app = app
        self._gatekeeper = gatekeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        is_open = scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS
        refusal = None if is_open else self._gatekeeper.refusal(dict(scope["headers"]))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, problem = refusal
        body = json.dumps({"error": error_to_wire(RequestRefused(problem))}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _is_local(host: bytes) -> bool:
    try:
        return urlsplit("//" + host.decode("ascii")).hostname in _LOCAL
    except ValueError:
        return False
