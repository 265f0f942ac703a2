"""The adapter: the domains of tau2-bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment


class TauAdapter(Adapter):
    """One environment per domain."""

    name = "tau"
    description = "tau2-bench: customer service with tools, a policy and a simulated user"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """None yet."""
        return []

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`."""
        self.info(name)
        raise AssertionError("no environment is listed")


ADAPTER = TauAdapter()
