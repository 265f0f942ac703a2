"""Isolation: an environment behind a server, in a process, a venv, a container, or elsewhere."""

from llenvs.container.config import ContainerConfig, ResourceLimits
from llenvs.container.create import create_container_environment

__all__ = ["ContainerConfig", "ResourceLimits", "create_container_environment"]
