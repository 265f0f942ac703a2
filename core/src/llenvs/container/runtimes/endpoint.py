"""What a runtime gives: a running server, and the means to watch and end it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a server: ``unix:///path`` or ``http(s)://host:port``, and the bearer token, if any."""

    address: str
    token: str | None = None


class RunningServer(ABC):
    """A server that a runtime started (or found)."""

    endpoint: Endpoint

    @abstractmethod
    def is_alive(self) -> bool:
        """Whether the process or container still runs (cheap)."""

    @abstractmethod
    def log_tail(self, lines: int = 20) -> str:
        """The last lines it wrote, for error messages."""

    @abstractmethod
    def stop(self) -> None:
        """End it and remove what it leaves behind (socket, container, temporary files). Twice is fine."""


class Runtime(ABC):
    """A way to run servers for one environment."""

    @abstractmethod
    def start(self, environment: Mapping[str, Any]) -> RunningServer:
        """Start a server for `environment` (``{"name", "adapter", **options}``) and wait until it is ready.

        Raises:
            ContainerFailed: it did not become ready within the timeout or died; with the tail of its log.
        """
