"""Runtime "url" and the health check, against a plain HTTP server."""

import http.server
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llenvs.container import ContainerConfig
from llenvs.container.runtimes import runtime_for
from llenvs.container.runtimes.endpoint import Endpoint
from llenvs.container.runtimes.health import health_problem
from llenvs.container.runtimes.port_forward import PortForward
from llenvs.core.errors import ContainerFailed


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        right = self.headers.get("Authorization") == "Bearer open sesame"
        self.send_response((200 if right else 401) if self.path == "/health" else 404)
        self.end_headers()

    def address_string(self) -> str:
        return "client"

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def unix_server(tmp_path) -> Iterator[Path]:
    path = tmp_path / "s"
    with UnixServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield path
        server.shutdown()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def config(url: str, **fields) -> ContainerConfig:
    return ContainerConfig(runtime="url", url=url, **fields)


def test_finds_a_server_and_leaves_it_alone(server):
    running = runtime_for(config(f"{server}/", token="open sesame")).start({})
    assert running.endpoint == Endpoint(server, "open sesame")
    assert running.is_alive()
    assert running.log_tail() == ""
    running.stop()
    assert running.is_alive()


def test_finds_a_server_on_a_unix_socket(unix_server):
    running = runtime_for(config(f"unix://{unix_server}", token="open sesame")).start({})
    assert running.is_alive()


def test_a_wrong_token_is_said_at_once(server):
    with pytest.raises(ContainerFailed, match=r"cannot be used: it refuses the token \(HTTP 401\)"):
        runtime_for(config(server, token="open barley")).start({})


def test_something_else_on_the_port_is_said_at_once(server):
    with pytest.raises(ContainerFailed, match="/health answers HTTP 404, so it is no LLEnvs server"):
        runtime_for(config(f"{server}/elsewhere", token="open sesame")).start({})


def test_a_server_that_is_not_there_is_waited_for_a_while():
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ContainerFailed, match=r"cannot be used: no answer \(.*refused"):
        runtime_for(config(url, start_timeout=0.5)).start({})


def test_a_server_that_comes_later_is_found():
    port = free_port()
    found = []
    client = threading.Thread(
        target=lambda: found.append(runtime_for(config(f"http://127.0.0.1:{port}", token="open sesame")).start({}))
    )
    client.start()
    client.join(0.3)
    assert found == []
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        client.join()
        server.shutdown()
    assert len(found) == 1


@pytest.mark.parametrize("address", ["ftp://host", "localhost:8080", "http://"])
def test_no_address(address):
    assert "is no address of a server; valid: http(s)://host:port" in (health_problem(Endpoint(address)) or "")


def test_a_port_is_forwarded_to_a_socket_until_closed(unix_server):
    port = free_port()
    forward = PortForward(port, unix_server)
    endpoint = Endpoint(f"http://127.0.0.1:{port}", "open sesame")
    try:
        assert [health_problem(endpoint) for _ in range(3)] == [None] * 3
        with pytest.raises(OSError, match="in use"):
            PortForward(port, unix_server)
        # a connection that stays open does not keep it from closing
        idle = socket.create_connection(("127.0.0.1", port))
        assert health_problem(endpoint) is None  # it is served after the idle one, which is accepted by now
    finally:
        forward.close()
    assert idle.recv(1) == b""
    idle.close()
    assert "refused" in (health_problem(endpoint) or "")
    forward.close()


def test_a_forwarded_port_whose_server_is_gone_hangs_up(tmp_path):
    port = free_port()
    forward = PortForward(port, tmp_path / "nothing")
    assert "no answer" in (health_problem(Endpoint(f"http://127.0.0.1:{port}")) or "")
    forward.close()
