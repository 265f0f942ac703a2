"""Where and how an isolated environment runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

RuntimeName = Literal["process", "venv", "docker", "url"]

_RUNTIMES_OF = {
    "url": ("url",),
    "python": ("venv",),
    "packages": ("venv",),
    **dict.fromkeys(("image", "engine", "limits", "network", "volumes", "port"), ("docker",)),
    **dict.fromkeys(("env", "log_dir"), ("process", "venv", "docker")),
}
"""The fields that mean something to some runtimes alone."""


class ResourceLimits(BaseModel):
    """Limits of a docker container.

    Attributes:
        memory: in the engine's words, e.g. "2g".
        cpus: cores, may be a fraction.
        pids: most processes and threads.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory: str = "2g"
    cpus: float = Field(default=2.0, gt=0)
    pids: int = Field(default=256, ge=16)


class ContainerConfig(BaseModel):
    """Where and how an environment runs when it does not run in this process.

    A field that the runtime has no use for is refused: who gives it expects something of it.

    Attributes:
        runtime: "process" (a child with this interpreter), "venv" (an environment of its own, made by uv),
            "docker" (a container), "url" (a server that someone else started).
        replicas: number of servers behind one client, >= 1.
        url: for runtime "url": ``http(s)://host:port`` or ``unix:///path``.
        token: bearer token; made by us except for "url".
        port: for "docker": the port published on 127.0.0.1 (None: a free one).
        image: for "docker": the image to run.
        engine: for "docker": the command line to use.
        limits: for "docker".
        network: for "docker": "none" or a network of the engine.
        volumes: for "docker": host path -> container path, read-only unless the latter ends in ":rw".
        env: environment variables of the server; not for "url".
        python: for "venv": the Python version to use instead of the one that the package's metadata asks for.
        packages: for "venv": extra requirements to install, e.g. ``["reasoning-gym==0.1.23"]`` (they override).
        seal: hidden state leaves the server encrypted only; for "url": a server that does not seal is refused.
        start_timeout: seconds until the server must be ready.
        request_timeout: seconds for one request; None for no limit.
        max_in_flight: most requests a client sends to one server at once.
        restarts: how often a dead server is started again within `restart_window` seconds before giving up.
        log_dir: where the logs of servers stay; None: with the server, and gone when it is. Not for "url".
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    runtime: RuntimeName = "process"
    replicas: int = Field(default=1, ge=1)
    url: str | None = None
    token: SecretStr | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    image: str | None = None
    engine: str = "docker"
    limits: ResourceLimits = Field(default_factory=ResourceLimits)
    network: str = "none"
    volumes: Mapping[str, str] = Field(default_factory=dict)
    env: Mapping[str, str] = Field(default_factory=dict)
    python: str | None = None
    packages: tuple[str, ...] = ()
    seal: bool = False
    start_timeout: float = Field(default=120.0, gt=0)
    request_timeout: float | None = Field(default=600.0, gt=0)
    max_in_flight: int = Field(default=256, ge=1)
    restarts: int = Field(default=20, ge=0)
    restart_window: float = Field(default=60.0, gt=0)
    log_dir: Path | None = None

    def model_post_init(self, context: Any) -> None:
        """Cross checks."""
        for name, runtimes in _RUNTIMES_OF.items():
            if self.runtime not in runtimes and getattr(self, name) != type(self).model_fields[name].get_default(
                call_default_factory=True
            ):
                needed = " or ".join(repr(each) for each in runtimes)
                raise ValueError(f"{name} goes with runtime {needed}, and means nothing to {self.runtime!r}")
        if self.runtime == "url" and self.url is None:
            raise ValueError("runtime 'url' needs url")
        if self.runtime == "docker" and not self.image:
            raise ValueError("runtime 'docker' needs image")
        if self.port is not None and self.replicas > 1:
            raise ValueError(f"port is for one server, and replicas={self.replicas} are more")
