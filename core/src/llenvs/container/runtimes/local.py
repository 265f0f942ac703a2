"""Servers on this machine, whichever interpreter runs them."""

from __future__ import annotations

import os
import secrets
import socket
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llenvs.container.config import ContainerConfig
from llenvs.container.runtimes.endpoint import Endpoint, Runtime
from llenvs.container.runtimes.guarded import GuardedServer, Launch
from llenvs.container.runtimes.run_directory import RunDirectory
from llenvs.container.runtimes.server_command import label_of, log_file, seal_key, server_options

_LONGEST_SOCKET_PATH = 103
"""Bytes; 107 on Linux, 103 on macOS and the BSDs (sun_path)."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that has the server and the adapter.

    Attributes:
        path: of the executable.
        environment: environment variables to start it with.
        hold_fds: descriptors to keep open as long as the server runs (the lock of a sandbox).
    """

    path: str
    environment: Mapping[str, str]
    hold_fds: tuple[int, ...] = ()


class LocalRuntime(Runtime):
    """Starts servers as child processes, on a Unix socket in a private directory.

    Where there are no Unix sockets, or the path would be too long for one, on 127.0.0.1 with a token.
    """

    def __init__(self, config: ContainerConfig) -> None:
        self._config = config
        self._seal_key = seal_key() if config.seal else None

    @abstractmethod
    def _interpreter(self, environment: Mapping[str, Any]) -> AbstractContextManager[Interpreter]:
        """The interpreter for `environment`, made now if need be."""

    def start(self, environment: Mapping[str, Any]) -> GuardedServer:
        """See `Runtime.start`."""
        with self._interpreter(environment) as interpreter:
            return self._start(environment, interpreter)

    def _start(self, environment: Mapping[str, Any], interpreter: Interpreter) -> GuardedServer:
        directory = RunDirectory()
        try:
            listen, token = self._listen(directory)
            options = server_options(environment, directory, seal_key=self._seal_key)
            # -P: modules in the current directory are not for the server
            command = [interpreter.path, "-P", "-m", "llenvs_container", *options, *listen]
            launch = Launch(
                command=[*command, "--ready-fd", "{ready}", "--parent-pid", "{guardian}"],
                environment={**interpreter.environment, "PYTHONUNBUFFERED": "1", **self._config.env},
                what=f"the server of {label_of(environment)}",
                log=log_file(self._config, environment, directory),
                hold_fds=interpreter.hold_fds,
            )
        except BaseException:
            directory.remove()
            raise
        server = GuardedServer(directory, launch)
        server.endpoint = Endpoint(server.wait_until_ready(self._config.start_timeout), token)
        return server

    def _listen(self, directory: RunDirectory) -> tuple[list[str], str | None]:
        """Arguments that say where to listen, and the token."""
        path = directory.path / "s"
        if _takes_unix_socket(path):
            return ["--uds", str(path)], None
        given = self._config.token
        token = secrets.token_urlsafe(32) if given is None else given.get_secret_value()
        file = directory.write_secret("token", token.encode())
        return ["--host", "127.0.0.1", "--port", "0", "--token-file", str(file)], token


def _takes_unix_socket(path: Path) -> bool:
    return hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH
