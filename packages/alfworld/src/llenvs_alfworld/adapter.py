"""The adapter: the splits of ALFWorld."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import UnknownEnvironment


class AlfworldAdapter(Adapter):
    """Household tasks as text games."""

    name = "alfworld"
    description = "ALFWorld: household tasks as text games, steppable from any state"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """The splits."""
        return []

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`."""
        raise UnknownEnvironment(name, [])


ADAPTER = AlfworldAdapter()
