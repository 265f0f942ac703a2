"""The adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import UnknownEnvironment


class VerifiersAdapter(Adapter):
    """Installed environment modules."""

    name = "verifiers"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """None yet."""
        return []

    def create(self, name: str, options: Any) -> Environment[Any]:
        """None yet."""
        raise UnknownEnvironment(name, [])


ADAPTER = VerifiersAdapter()
