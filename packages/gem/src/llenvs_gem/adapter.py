"""The adapter: what GEM has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import UnknownEnvironment


class GemAdapter(Adapter):
    """GEM's environments."""

    name = "gem"
    description = "GEM: text games, maths, code, question answering and logic, with tools"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """See `Adapter`."""
        return []

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`."""
        raise UnknownEnvironment(name, [])


ADAPTER = GemAdapter()
