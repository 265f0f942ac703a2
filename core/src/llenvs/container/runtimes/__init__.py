"""Runtimes: the ways to run the server of an isolated environment."""

from __future__ import annotations

from llenvs.container.config import ContainerConfig
from llenvs.container.runtimes.endpoint import Runtime


def runtime_for(config: ContainerConfig) -> Runtime:
    """The runtime that `config` asks for. Its module is imported now."""
    match config.runtime:
        case "process":
            from llenvs.container.runtimes.process import ProcessRuntime

            return ProcessRuntime(config)
        case "venv":
            from llenvs.container.runtimes.venv import VenvRuntime

            return VenvRuntime(config)
        case "docker":
            from llenvs.container.runtimes.docker import DockerRuntime

            return DockerRuntime(config)
        case "url":
            from llenvs.container.runtimes.url import UrlRuntime

            return UrlRuntime(config)
