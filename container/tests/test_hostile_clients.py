"""Clients that mean harm, or are broken: the server refuses them and serves the others on."""

import asyncio
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from probing import PROBE, PROBES, Server, behind, config, serving
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from llenvs import Action
from llenvs.container.errors import RequestRefused
from llenvs.core.errors import ContainerFailed

TOKEN = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--head-timeout", "1", "--max-request-bytes", "500000", "--max-connections", "3000") as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(TOKEN + "\n")
    with serving("--token-file", str(file)) as running:
        yield running


def works(server: Server) -> bool:
    status, reset = server.ask("POST", "/reset", {"options": {"task_index": 2}})
    return status == 200 and server.ask("POST", "/step", {"key": reset["key"], "action": "14"})[1]["terminated"]


def channel(server: Server, **arguments: Any) -> Any:
    return connect(f"ws://{server.host}:{server.port}/channel", max_size=None, **arguments)


def reset_on(socket: Any) -> str:
    socket.send(json.dumps({"id": "r", "op": "reset", "options": {"task_index": 2}}))
    return json.loads(socket.recv())["ok"]["key"]


DEEP = "[" * 100_000
MALFORMED = [
    (b"{", "no JSON"),
    (b"\xff\xfe{}", "no JSON"),
    (DEEP.encode()[:90_000], "no JSON"),
    (b'{"seed": ' + b"9" * 5000 + b"}", "no JSON"),
    (b'"text"', "valid dictionary"),
    (b'{"seed": 1, "__class__": "x"}', "unknown field '__class__'"),
    (b'{"options": {"task_index": 1}, "import": "os"}', "unknown field 'import'"),
    (b'{"options": []}', "options"),
]


@pytest.mark.parametrize(("body", "message"), MALFORMED)
def test_malformed_bodies(server, body, message):
    status, answer = server.ask("POST", "/reset", body)
    assert status == 400
    assert message in answer["error"]["message"]
    assert works(server)


HOSTILE_STATES = [
    {"$State": {"observation": "text", "hidden": {}, "metadata": {"$StateMetadata": {}}}},
    {"$State": {"observation": {"$Observation": {}}, "hidden": {}, "metadata": {"$StateMetadata": {"step": "x"}}}},
    {"$State": {"observation": {"$Observation": {}}}},
    {"$os.system": "ls"},
    {"$object": {"py/reduce": []}},
    {"$ndarray": {"dtype": "|O", "shape": [1], "data": "AAAAAAAAAAA="}},
    {"$ndarray": {"dtype": "<f8", "shape": [1 << 40], "data": ""}},
    {"$State": {"observation": {"$Observation": {}}, "hidden": json.loads("[" * 500 + "]" * 500)}},
]


@pytest.mark.parametrize("state", HOSTILE_STATES)
def test_states_that_are_none(server, state):
    status, answer = server.ask("POST", "/step", {"state": state, "action": "1"})
    assert (status, answer["error"]["type"]) == (422, "EncodingFailed")


def test_a_state_that_the_environment_cannot_make_sense_of(server):
    state = {
        "$State": {
            "observation": {"$Observation": {}},
            "hidden": {"number": []},
            "metadata": {"$StateMetadata": {}},
        }
    }
    status, answer = server.ask("POST", "/step", {"state": state, "action": "1"})
    assert (status, answer["error"]["type"]) == (500, "UpstreamFailed")
    assert works(server)


def test_oversized_bodies(server):
    big = json.dumps({"options": {"mood": "x" * 600_000}})
    status, answer = server.ask("POST", "/reset", big)
    assert status == 413
    assert "limit is 500000" in answer["error"]["message"]
    # a body that does not say how long it is
    connection = server.connection()
    connection.request("POST", "/reset", iter([b"x" * 100_000] * 6), encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
    # a length that is announced and never comes costs nothing but its connection
    with socket.create_connection((server.host, server.port)) as raw:
        raw.sendall(b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in raw.recv(100)
    assert works(server)


def test_malformed_http(server):
    for garbage in (
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /reset HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ):
        with socket.create_connection((server.host, server.port), timeout=20) as raw:
            raw.sendall(garbage)
            assert raw.recv(100).startswith(b"HTTP/1.1 4")
    with socket.create_connection((server.host, server.port), timeout=20) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000)
        assert b" 400 " in raw.recv(100)
    assert works(server)


# -- the channel ------------------------------------------------------------------------------------------


def test_malformed_frames(server):
    with channel(server) as client:
        key = reset_on(client)
        for text in ("{", "7", '"x"', "[[]]", "{}", '{"id": []}', '{"id": 1.5, "op": "step"}', DEEP[:50_000]):
            client.send(text)
            answer = json.loads(client.recv())
            assert answer["id"] is None
            assert answer["error"]["type"] == "RequestRefused"
        for request, message in (
            ({"op": "eval"}, "unknown operation 'eval'"),
            ({"op": ["step"]}, "unknown operation"),
            ({"op": "__init__"}, "unknown operation"),
            ({"op": "step", "key": key, "acton": "14"}, "did you mean 'action'"),
            ({"op": "step", "key": "x" * 100, "action": "14"}, "key"),
        ):
            client.send(json.dumps({"id": 5, **request}))
            answer = json.loads(client.recv())
            assert answer["id"] == 5
            assert message in answer["error"]["message"]
        client.send(json.dumps([{"id": i, "op": "describe"} for i in range(5000)]))
        assert "at most 4096" in json.loads(client.recv())["error"]["message"]
        client.send(json.dumps({"id": 6, "op": "step", "key": key, "action": "14"}))
        assert json.loads(client.recv())["ok"]["terminated"]


def test_oversized_frames_end_the_connection(server):
    with channel(server) as client:
        client.send("x" * 600_000)
        with pytest.raises(ConnectionClosed) as closed:
            client.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    assert works(server)


def test_frames_that_break_the_protocol(server):
    handshake = (
        b"GET /channel HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    for frame in (b"\xff\xff" + struct.pack(">Q", 1 << 62), b"\x81\x05hello", b"\x83\x80\0\0\0\0"):
        with socket.create_connection((server.host, server.port), timeout=20) as raw:
            raw.sendall(handshake)
            assert b"101 Switching" in raw.recv(1000)
            raw.sendall(frame)
            while raw.recv(1000):  # until the server hangs up
                pass
    assert works(server)


def test_a_flood_of_requests_is_answered_in_full(server):
    with channel(server) as client:
        key = reset_on(client)
        for start in range(0, 10_000, 500):
            steps = [{"id": start + i, "op": "step", "key": key, "action": "14"} for i in range(500)]
            client.send(json.dumps(steps))
        answered: dict[int, str] = {}
        while len(answered) < 10_000:
            frame = json.loads(client.recv())
            for answer in frame if isinstance(frame, list) else [frame]:
                answered[answer["id"]] = "ok" if "ok" in answer else answer["error"]["type"]
        assert set(answered.values()) <= {"ok", "ServerBusy"}  # the queue is bounded
        assert "ok" in answered.values()
    assert works(server)


def test_a_client_that_takes_no_answers_holds_up_no_other(server):
    with socket.create_connection((server.host, server.port), timeout=5) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with channel(server, sock=raw) as client:
            steps = json.dumps([{"id": i, "op": "describe"} for i in range(1000)])
            began = time.monotonic()
            try:
                while time.monotonic() - began < 2:
                    client.socket.settimeout(0.5)
                    client.send(steps)
            except (TimeoutError, OSError, ConnectionClosed):
                pass  # the server reads no further
            assert works(server)


# -- who may come in --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"bearer {TOKEN}", "Bearer "]
)
def test_wrong_tokens(guarded, given):
    headers = {} if given is None else {"Authorization": given}
    for method, path in (("POST", "/reset"), ("GET", "/spec"), ("GET", "/metrics"), ("GET", "/openapi.json")):
        status, answer = guarded.ask(method, path, None, headers)
        assert status == 401
        assert TOKEN not in json.dumps(answer)
    with pytest.raises(InvalidStatus) as refused:
        channel(guarded, additional_headers=headers)
    assert refused.value.response.status_code == 401
    assert guarded.ask("GET", "/health")[0] == 200


def test_the_right_token(guarded):
    assert guarded.ask("POST", "/reset", {}, {"Authorization": f"Bearer {TOKEN}"})[0] == 200
    with behind(config(runtime="url", url=guarded.address, token=TOKEN, env={})) as env:
        state, _ = env.reset(options={"task_index": 2})
        assert env.step(state, Action("14")).terminated
    with pytest.raises((RequestRefused, ContainerFailed), match=r"401|token"):
        behind(config(runtime="url", url=guarded.address, token="something-else-entirely", env={}))
    assert TOKEN not in guarded.log.read_text()


def test_web_pages_and_foreign_names_are_refused_without_a_token(server):
    assert server.ask("POST", "/reset", {}, {"Origin": "https://evil.example"})[0] == 403
    assert server.ask("POST", "/reset", {}, {"Host": "evil.example"})[0] == 403
    with pytest.raises(InvalidStatus) as refused:
        channel(server, origin="https://evil.example")
    assert refused.value.response.status_code == 403
    assert server.ask("POST", "/reset", {}, {"Host": f"localhost:{server.port}"})[0] == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "needs --token-file"),
        (["--host", "::"], "needs --token-file"),
        (["--host", "example.com"], "needs --token-file"),
        (["--token-file", "/nonexistent"], "--token-file"),
        (["--token-file", "/dev/null"], "at least 16"),
        (["--tls-cert", "/nonexistent"], "goes together with --tls-key"),
        (["--seal-key-file", "/dev/null"], "64 random bytes"),
        (["--config", "[]"], "must be an object with a name"),
        (["--config", "{"], "is no JSON"),
        (["--config", '{"name": "x", "container": "venv"}'], "cannot hold 'container'"),
    ],
)
def test_the_server_does_not_start_unsafely(arguments, message):
    command = [sys.executable, "-m", "llenvs_container", "--config", json.dumps(PROBE), "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROBES)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_unix_socket_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "s"
    command = [sys.executable, "-m", "llenvs_container", "--config", json.dumps(PROBE), "--uds", str(path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(PROBES)}, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not path.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        process.terminate()
        assert process.wait(20) == 0
    assert not path.exists()


# -- many, and slow ---------------------------------------------------------------------------------------


def test_slow_loris(server):
    """A thousand connections that send their requests byte by byte: cut off, and nobody else waits for them."""
    slow = [socket.create_connection((server.host, server.port)) for _ in range(1000)]
    try:
        for connection in slow:
            connection.sendall(b"POST /reset HTTP/1.1\r\nHost: loc")
        assert works(server)
        deadline = time.monotonic() + 20
        while slow and time.monotonic() < deadline:
            time.sleep(0.2)
            slow = [connection for connection in slow if not is_cut_off(connection)]
        assert slow == []
    finally:
        for connection in slow:
            connection.close()
    assert works(server)


def is_cut_off(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"a")
        connection.setblocking(False)
        try:
            gone = connection.recv(1) == b""
        except BlockingIOError:
            gone = False
        connection.setblocking(True)
    except OSError:
        gone = True
    if gone:
        connection.close()
    return gone


def test_a_connection_that_says_nothing_after_a_request_is_closed(server):
    connection = server.connection()
    connection.request("GET", "/health")
    connection.getresponse().read()
    assert connection.sock is not None
    connection.sock.settimeout(30)
    connection.sock.sendall(b"GET /hea")  # begins another request and stops
    assert connection.sock.recv(100) == b""
    connection.close()


def test_a_thousand_connections_are_all_served(server):
    async def run() -> list[bytes]:
        slots = asyncio.Semaphore(200)

        async def one() -> bytes:
            async with slots:
                reader, writer = await asyncio.open_connection(server.host, server.port)
            everyone.append(writer)
            while len(everyone) < 1000:
                await asyncio.sleep(0.01)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            return answer

        everyone: list[asyncio.StreamWriter] = []
        return list(await asyncio.gather(*(one() for _ in range(1000))))

    answers = asyncio.run(run())
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)


def is_refused(server: Server) -> bool:
    try:
        return server.ask("GET", "/health")[0] != 200
    except (ConnectionError, http.client.HTTPException):
        return True


def test_connections_past_the_limit_are_closed():
    with serving("--max-connections", "5") as server:
        first = [socket.create_connection((server.host, server.port), timeout=20) for _ in range(5)]
        time.sleep(0.2)
        assert is_refused(server)
        for connection in first:
            connection.close()
        deadline = time.monotonic() + 20
        while is_refused(server):
            assert time.monotonic() < deadline
            time.sleep(0.05)
