"""The runtime "url": a server that someone else started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from llenvs.container.config import ContainerConfig
from llenvs.container.runtimes.endpoint import Endpoint, RunningServer, Runtime
from llenvs.container.runtimes.health import health_problem
from llenvs.core.errors import ContainerFailed

_PATIENCE = 10.0
"""Most seconds that a server which refuses connections may still be starting."""


class UrlRuntime(Runtime):
    """Finds the server at ``config.url``; starts and stops nothing."""

    def __init__(self, config: ContainerConfig) -> None:
        assert config.url is not None
        token = None if config.token is None else config.token.get_secret_value()
        self._endpoint = Endpoint(config.url.rstrip("/"), token)
        self._timeout = min(config.start_timeout, _PATIENCE)

    def start(self, environment: Mapping[str, Any]) -> RunningServer:
        """The server, once it answers; see `Runtime.start`."""
        deadline = time.monotonic() + self._timeout
        while (problem := health_problem(self._endpoint, timeout=self._timeout)) is not None:
            # a server that is being started may not listen yet; one that refuses us will go on doing so
            if not problem.startswith("no answer") or time.monotonic() > deadline:
                raise ContainerFailed(f"the server at {self._endpoint.address} cannot be used: {problem}")
            time.sleep(0.1)
        return FoundServer(self._endpoint)


class FoundServer(RunningServer):
    """A server whose life is somebody else's business."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def is_alive(self) -> bool:
        """Whether it answers (one request)."""
        return health_problem(self.endpoint, timeout=2.0) is None

    def log_tail(self, lines: int = 20) -> str:
        """Nothing: its log is not ours."""
        return ""

    def stop(self) -> None:
        """Nothing: it is not ours to stop."""
