from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from llenvs_llamacpp import LlamaCppBackend
from llenvs_openai import OpenAIBackend


@pytest.fixture(scope="session")
def llamacpp() -> Iterator[LlamaCppBackend]:
    """llama.cpp's own HTTP server, 4 slots of 2048 tokens."""
    with LlamaCppBackend(n_ctx=2048, slots=4) as backend:
        yield backend


@pytest.fixture(scope="session")
def backend(llamacpp: LlamaCppBackend) -> OpenAIBackend:
    return OpenAIBackend(llamacpp.model, base_url=llamacpp.base_url, api_key=llamacpp.api_key)


@dataclass
class Reply:
    """What the stub answers. `body`: JSON data, or text as it is; `drop`: hang up instead."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False


@dataclass
class Received:
    """A request; the names of its headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any
    at: float


class Stub:
    """A local HTTP server that answers by script: documented answers of providers over real sockets."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.script: Callable[[int, Received], Reply] = lambda number, request: Reply(404)
        self.in_flight = self.most_in_flight = 0
        self._lock = threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Received(self.path, headers, json.loads(data) if data else None, time.time())
                with stub._lock:
                    number = len(stub.received)
                    stub.received.append(request)
                    stub.in_flight += 1
                    stub.most_in_flight = max(stub.most_in_flight, stub.in_flight)
                reply = stub.script(number, request)
                time.sleep(reply.delay)
                with stub._lock:
                    stub.in_flight -= 1
                if reply.drop:
                    self.close_connection = True
                    self.connection.close()
                    return
                is_text = isinstance(reply.body, str)
                payload = reply.body.encode() if is_text else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that hung up

        self._server = Server(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answers(self, *replies: Reply) -> None:
        """Answer with these in turn, the last one for ever."""
        self.script = lambda number, request: replies[min(number, len(replies) - 1)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub()
    yield server
    server.close()


def completion(text: str = "ok", **fields: Any) -> dict[str, Any]:
    """A chat completion as OpenAI documents it."""
    message = {"role": "assistant", "content": text, "refusal": None, **fields.pop("message", {})}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "stop",
        "logprobs": None,
        **fields.pop("choice", {}),
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m-2026",
        "choices": [choice],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        **fields,
    }


@pytest.fixture
def answer() -> Callable[..., dict[str, Any]]:
    return completion


@pytest.fixture
def reply() -> type[Reply]:
    return Reply
