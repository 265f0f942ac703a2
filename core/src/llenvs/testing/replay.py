"""A local HTTP server that answers by script: documented answers of providers, errors included, over real sockets.

```python
with ReplayServer() as server:
    server.answers(Reply(429, {"error": ...}, {"Retry-After": "1"}), Reply(200, {...}))
    backend = OpenAIBackend("m", base_url=server.base_url)
```
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from llenvs.core.closing import Closing


@dataclass
class Reply:
    """What the server answers.

    Attributes:
        status: of HTTP.
        body: JSON data, or a text that is sent as it is.
        headers: beside Content-Type (application/json unless given) and Content-Length.
        delay: seconds before the answer.
        drop: hang up instead of answering; with a body, after half of it was sent.
        endless: after the body go on with white space, a bit at a time, until the client hangs up.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False
    endless: bool = False


@dataclass
class Received:
    """A request that came: its method, path, headers (names in lower case), JSON body, and when (Unix seconds)."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float


class ReplayServer(Closing):
    """Listens on a free port of 127.0.0.1 until it is closed.

    Attributes:
        url: ``http://127.0.0.1:<port>``.
        base_url: the same with ``/v1``.
        script: gives the reply to the n-th request (from 0).
        received: requests so far.
        most_in_flight: requests that were being answered at once, at most.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.script: Callable[[int, Received], Reply] = lambda number, request: Reply(404)
        self.in_flight = self.most_in_flight = 0
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _handler_of(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.base_url = f"{self.url}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def answers(self, *replies: Reply) -> None:
        """Answer with these in turn from the first request on, the last one for ever."""
        self.script = lambda number, request: replies[min(number, len(replies) - 1)]

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()

    def _reply(self, request: Received) -> Reply:
        with self._lock:
            number = len(self.received)
            self.received.append(request)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = self.script(number, request)
            time.sleep(reply.delay)
        finally:
            with self._lock:
                self.in_flight -= 1
        return reply


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no error here."""


def _handler_of(server: ReplayServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(data) if data else None
            reply = server._reply(Received(self.command, self.path, headers, body, time.time()))
            if reply.drop and reply.body is None:
                self._hang_up()
                return
            payload = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(10**9 if reply.endless else len(payload)))
            self.end_headers()
            if reply.endless:
                self._go_on(payload)
            elif reply.drop:
                self.wfile.write(payload[: len(payload) // 2])
                self._hang_up()
            else:
                self.wfile.write(payload)

        def _go_on(self, payload: bytes) -> None:
            try:
                while True:
                    self.wfile.write(payload)
                    payload = b" "
                    time.sleep(0.02)
            except OSError:  # the client has hung up
                self.close_connection = True

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.close()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
