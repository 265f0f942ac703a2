"""Where the server listens: TLS, and ending with its parent."""

import datetime as dt
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from life import eventually, is_running
from probing import PROBE, PROBES, behind, config

from llenvs import Action
from llenvs.core.errors import ContainerFailed

ENVIRON = {**os.environ, "PYTHONPATH": str(PROBES)}


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, signed by its own key, and the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "probe")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert_file, key_file


def start(*arguments: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server and its address."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "llenvs_container", "--config", json.dumps(PROBE), "--ready-fd", str(writing)]
    process = subprocess.Popen([*command, *arguments], pass_fds=[writing], env=ENVIRON, stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as ready:
        return process, json.loads(ready.readline())["address"]


def test_tls(tmp_path, monkeypatch):
    cert, key = certificate(tmp_path)
    process, address = start("--port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        assert address.startswith("https://127.0.0.1:")
        with pytest.raises(ContainerFailed, match="certificate"):
            behind(config(runtime="url", url=address, env={}, start_timeout=0.5))
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with behind(config(runtime="url", url=address, env={})) as env:
            state, _ = env.reset(options={"task_index": 2})
            assert env.step(state, Action("14")).terminated
        # a client that begins no TLS handshake
        host, port = address.removeprefix("https://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" not in raw.recv(100)
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_tls_files_that_are_none(tmp_path):
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("nonsense")
    files = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    command = [sys.executable, "-m", "llenvs_container", "--config", json.dumps(PROBE), "--port", "0", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRON)
    assert done.returncode == 1
    assert "--tls-cert: cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_ends_with_its_parent(tmp_path):
    parent = subprocess.Popen(["sleep", "600"])
    path = tmp_path / "s"
    process, _ = start("--uds", str(path), "--parent-pid", str(parent.pid))
    assert path.exists()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    eventually(lambda: process.poll() is not None, "the server ends")
    assert not path.exists()


def test_it_ends_at_once_when_the_parent_is_gone_already():
    parent = subprocess.Popen(["true"])
    parent.wait()
    process, _ = start("--port", "0", "--parent-pid", str(parent.pid))
    assert process.wait(20) == 0
    assert not is_running(process.pid)


def test_sigterm_in_the_middle_of_a_step(tmp_path):
    path = tmp_path / "s"
    process, address = start("--uds", str(path))
    with behind(config(runtime="url", url=address, env={})) as env:
        state, _ = env.reset(options={"task_index": 2})
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(path))
            body = json.dumps({"state": json.loads(state.to_json()), "action": "sleep 60"})
            raw.sendall(
                f"POST /step HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            time.sleep(0.3)
            process.terminate()
            assert process.wait(20) == 0  # long before the step would have ended
    assert not path.exists()


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "llenvs_container", "--config", json.dumps(PROBE), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRON)
    assert done.returncode == 1
    assert "--port: cannot be listened on" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_module_of_the_core_hands_over():
    done = subprocess.run(
        [sys.executable, "-m", "llenvs.container", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "--seal-key-file" in done.stdout
