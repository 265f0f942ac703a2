"""What the tests of client and server share: the probe, here and behind a server, and a raw HTTP client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llenvs.container import ContainerConfig, create_container_environment
from llenvs.container.client import ContainerEnvironment
from llenvs.core.environment import Environment
from llenvs.core.registry import environment_registry

PROBES = Path(__file__).parent / "probes"
PROBE: dict[str, Any] = {"name": "probe", "adapter": "probe"}

if str(PROBES) not in sys.path:
    sys.path.insert(0, str(PROBES))  # found by entry point from now on, here as in the servers


def config(**fields: Any) -> ContainerConfig:
    """Runtime "process" with the probe on the server's path."""
    return ContainerConfig.model_validate({"env": {"PYTHONPATH": str(PROBES)}, "start_timeout": 60.0, **fields})


def here(**options: Any) -> Environment[Any]:
    """The probe in this process."""
    return environment_registry.get("probe", "probe", **options)


def behind(container: ContainerConfig | None = None, **options: Any) -> ContainerEnvironment:
    """The probe behind a server."""
    return create_container_environment({**PROBE, **options}, container or config())


class Server:
    """A server as a person starts it, and requests to it by hand."""

    def __init__(self, address: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.address = address
        self.process = process
        self.log = log
        self.host, _, port = address.removeprefix("http://").rpartition(":")
        self.port = int(port)

    def connection(self) -> http.client.HTTPConnection:
        """A new connection."""
        return http.client.HTTPConnection(self.host, self.port, timeout=30)

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and parsed body. `body` may be JSON data, or text or bytes as they are."""
        data = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            text = response.read()
        is_json = (response.getheader("content-type") or "").startswith("application/json")
        return response.status, json.loads(text) if is_json else text.decode()


@contextlib.contextmanager
def serving(*arguments: str, **options: Any) -> Iterator[Server]:
    """A server on a free port of 127.0.0.1 with more `arguments`."""
    reading, writing = os.pipe()
    served = json.dumps({**PROBE, **options})
    command = [sys.executable, "-m", "llenvs_container", "--config", served, "--port", "0"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, "--ready-fd", str(writing), *arguments],
                pass_fds=[writing],
                stderr=file,
                stdout=file,
                env={**os.environ, "PYTHONPATH": str(PROBES)},
            )
        os.close(writing)
        with os.fdopen(reading) as ready:
            line = ready.readline()
        try:
            assert line, log.read_text()
            yield Server(json.loads(line)["address"], process, log)
        finally:
            process.terminate()
            process.wait(20)
