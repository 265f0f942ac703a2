"""Asking a server whether it answers, with the standard library alone."""

from __future__ import annotations

import http.client
import socket
import ssl
from urllib.parse import urlsplit

from llenvs.container.runtimes.endpoint import Endpoint


def health_problem(endpoint: Endpoint, timeout: float = 5.0) -> str | None:
    """None when ``GET /health`` at `endpoint` gives 200, else what is wrong, for a message.

    Args:
        timeout: seconds for connecting, and for each wait on the answer.
    """
    try:
        connection = _connection(endpoint.address, timeout)
    except ValueError as error:
        return str(error)
    headers = {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
    try:
        connection.request("GET", _path(endpoint.address), headers=headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"no answer ({str(error) or type(error).__name__})"
    finally:
        connection.close()
    if status in (401, 403):
        return f"it refuses the token (HTTP {status})"
    return None if status == 200 else f"/health answers HTTP {status}, so it is no LLEnvs server or not well"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(address: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    if parts.scheme == "unix":
        return _UnixConnection(address.removeprefix("unix://"), timeout)
    if parts.hostname is None or parts.scheme not in ("http", "https"):
        raise ValueError(f"{address!r} is no address of a server; valid: http(s)://host:port, unix:///path")
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


def _path(address: str) -> str:
    parts = urlsplit(address)
    return "/health" if parts.scheme == "unix" else parts.path.rstrip("/") + "/health"
