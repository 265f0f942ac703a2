"""The runtime "docker": the server in a container, with any engine that has docker's command line.

The container has no network, no capabilities, a read-only root and limits. It talks through a Unix socket in a
directory that is mounted into it. Its first process is a guardian too: when the engine's client is killed, the
container's standard input closes, and it ends by itself.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llenvs.container.config import ContainerConfig
from llenvs.container.runtimes.endpoint import Endpoint, Runtime
from llenvs.container.runtimes.guarded import GRACE, GuardedServer, Launch
from llenvs.container.runtimes.port_forward import PortForward
from llenvs.container.runtimes.run_directory import RunDirectory
from llenvs.container.runtimes.server_command import label_of, log_file, seal_key, server_options
from llenvs.core.errors import ContainerFailed, InvalidOption

RUN_LABEL = "llenvs.run"
"""Label of a container: its run directory on the host."""
OWNER_LABEL = "llenvs.owner"
"""Label of a container: see `owner`."""

_INSIDE = "/run/llenvs"
_INSIDE_PORT = 8000
_UNPRIVILEGED = 10001
_SCRATCH = "/tmp:rw,nosuid,nodev,mode=1777"


def owner() -> str:
    """Who started a container: ``uid@host``, since users, and hosts of a remote engine, share one list."""
    return f"{os.getuid()}@{socket.gethostname()}"


class DockerRuntime(Runtime):
    """Starts servers in containers of ``config.image``.

    Without a network the server listens on a Unix socket; `port`, if given, is forwarded to it. With a network its
    TCP port is published on 127.0.0.1, and it asks for a token.
    """

    def __init__(self, config: ContainerConfig) -> None:
        assert config.image is not None
        if config.network == "host" or config.network.startswith("container:"):
            raise InvalidOption(
                "container.network",
                config.network,
                "would end the isolation",
                valid="none, bridge, or a named network",
            )
        if sys.platform != "linux" and config.network == "none":
            raise InvalidOption(
                "container.network",
                config.network,
                "needs Linux: elsewhere containers run in a virtual machine, whose Unix sockets do not come out",
                valid="bridge, or a named network",
            )
        self._config = config
        self._image = config.image
        self._seal_key = seal_key() if config.seal else None
        self._has_network = config.network != "none"

    def start(self, environment: Mapping[str, Any]) -> GuardedServer:
        """See `Runtime.start`."""
        engine = shutil.which(self._config.engine)
        if engine is None:
            raise ContainerFailed(
                f"the container engine {self._config.engine!r} is not on PATH; install it, "
                "or name another one with engine: podman"
            )
        directory = RunDirectory()
        name = f"llenvs-{directory.path.name}"
        try:
            token = self._token()
            launch = Launch(
                command=[engine, *self._run_arguments(name, directory, environment, token)],
                environment=dict(os.environ),
                what=f"the container of {label_of(environment)}",
                log=log_file(self._config, environment, directory),
                keep_stdin=True,
                finally_=[[engine, "rm", "--force", name]],
            )
        except BaseException:
            directory.remove()
            raise
        server = ContainerServer(directory, launch)
        try:
            server.wait_until_ready(self._config.start_timeout)
        except ContainerFailed as error:
            raise self._explained(error, engine) from None
        server.shared.chmod(0o755)  # from now on nothing in the container can fill this disk through it
        server.endpoint = Endpoint(self._address(server, engine, name), token)
        if self._config.port is not None and not self._has_network:
            server.forward(self._config.port)
        return server

    # -- the command --------------------------------------------------------------------------------------

    def _run_arguments(
        self, name: str, directory: RunDirectory, environment: Mapping[str, Any], token: str | None
    ) -> list[str]:
        limits = self._config.limits
        inside = {
            "command": self._server_command(directory, environment, token),
            "grace": GRACE - 1.0,
            "exit_with_server": True,
            "quiet": True,
        }
        return [
            *("run", "--interactive", "--rm", "--pull", "never", "--name", name),
            *("--label", f"{RUN_LABEL}={directory.path}", "--label", f"{OWNER_LABEL}={owner()}"),
            *("--memory", limits.memory, "--memory-swap", limits.memory),
            *("--cpus", f"{limits.cpus:g}", "--pids-limit", str(limits.pids)),
            *("--read-only", "--tmpfs", _SCRATCH, "--user", _user()),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *self._network_arguments(),
            *("--volume", f"{_shared(directory)}:{_INSIDE}"),
            *self._volume_arguments(),
            *self._env_arguments(directory),
            # the guardian comes with llenvs-core, which the server needs anyway
            *("--entrypoint", "python", self._image),
            *("-P", "-m", "llenvs.container.runtimes.guardian", json.dumps(inside)),
        ]

    def _server_command(
        self, directory: RunDirectory, environment: Mapping[str, Any], token: str | None
    ) -> list[str]:
        shared = _shared(directory)
        shared.mkdir()
        # The run directory keeps others out. The user in the container, whatever its uid is here, must get in.
        shared.chmod(0o777)
        options = server_options(environment, directory, seal_key=self._seal_key, folder="io", mode=0o644)
        if self._has_network:
            options += ["--host", "0.0.0.0", "--port", str(_INSIDE_PORT)]
        else:
            options += ["--uds", f"{shared}/s"]
        if token is not None:
            options += ["--token-file", str(directory.write_secret("io/token", token.encode(), 0o644))]
        command = ["python", "-P", "-m", "llenvs_container", "--ready-fd", "1"]
        return [*command, *(_inside(shared, each) for each in options)]

    def _network_arguments(self) -> list[str]:
        arguments = ["--network", self._config.network]
        if self._has_network:
            arguments += ["--publish", f"127.0.0.1:{self._config.port or ''}:{_INSIDE_PORT}"]
        return arguments

    def _volume_arguments(self) -> list[str]:
        arguments = []
        for source, target in self._config.volumes.items():
            path = Path(source).expanduser().absolute()
            if not path.exists():
                raise InvalidOption(
                    f"container.volumes.{source}", source, "does not exist"
                )  # the engine makes a folder
            target, _, mode = target.partition(":")
            if not target.startswith("/") or mode not in ("", "ro", "rw") or ":" in str(path):
                raise InvalidOption(
                    f"container.volumes.{source}", target, "is no volume", valid="/path, /path:ro, /path:rw"
                )
            arguments += ["--volume", f"{path}:{target}:{mode or 'ro'}"]
        return arguments

    def _env_arguments(self, directory: RunDirectory) -> list[str]:
        variables = {"HOME": "/tmp", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **self._config.env}
        lines = []
        for key, value in variables.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or "\n" in value:
                raise InvalidOption(f"container.env.{key}", value, "is no variable with one line of text")
            lines.append(f"{key}={value}\n")
        # a file, since everybody can read the arguments of a process
        return ["--env-file", str(directory.write_secret("env", "".join(lines).encode()))]

    def _token(self) -> str | None:
        if self._config.token is not None:
            return self._config.token.get_secret_value()
        return secrets.token_urlsafe(32) if self._has_network else None

    # -- getting ready ------------------------------------------------------------------------------------

    def _address(self, server: ContainerServer, engine: str, name: str) -> str:
        if not self._has_network:
            return f"unix://{server.shared}/s"
        if self._config.port is not None:
            return f"http://127.0.0.1:{self._config.port}"
        command = [engine, "port", name, f"{_INSIDE_PORT}/tcp"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        published = found.stdout.strip().partition("\n")[0]
        if found.returncode != 0 or not published:
            server.stop()
            raise ContainerFailed(f"the engine does not say which port it published for {name}", found.stderr)
        return f"http://127.0.0.1:{published.rpartition(':')[2]}"

    def _explained(self, error: ContainerFailed, engine: str) -> ContainerFailed:
        tail = error.log_tail.lower()
        if "unable to find image" in tail or "no such image" in tail or "image not known" in tail:
            name = Path(engine).name
            return ContainerFailed(
                f"{name} has no image {self._image!r} here; build it (see container/images/README.md), "
                f"or run: {name} pull {self._image}"
            )
        return error


class ContainerServer(GuardedServer):
    """A server in a container, and the port that is forwarded to it, if any."""

    def __init__(self, directory: RunDirectory, launch: Launch) -> None:
        self.shared = _shared(directory)
        self._forward: PortForward | None = None
        super().__init__(directory, launch)

    def forward(self, port: int) -> None:
        """Make the server's Unix socket reachable at 127.0.0.1:`port` as long as it runs.

        Raises:
            ContainerFailed: the port is taken. The server is stopped.
        """
        try:
            self._forward = PortForward(port, self.shared / "s")
        except OSError as error:
            self.stop()
            raise ContainerFailed(f"port {port} on 127.0.0.1 cannot be used: {error.strerror}") from None

    def stop(self) -> None:
        """See `RunningServer.stop`."""
        if self._forward is not None:
            self._forward.close()
        super().stop()


def _shared(directory: RunDirectory) -> Path:
    return directory.path / "io"


def _inside(shared: Path, argument: str) -> str:
    """`argument`, where it is a path in the shared directory, as the container sees it."""
    prefix = f"{shared}/"
    return f"{_INSIDE}/{argument.removeprefix(prefix)}" if argument.startswith(prefix) else argument


def _user() -> str:
    """Who runs in the container: this user, for the sake of files in volumes, but never root."""
    uid, gid = os.getuid(), os.getgid()
    return f"{uid}:{gid}" if uid != 0 else f"{_UNPRIVILEGED}:{_UNPRIVILEGED}"
