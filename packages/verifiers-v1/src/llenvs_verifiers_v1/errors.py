"""What the adapter refuses."""

from __future__ import annotations

from llenvs.core.errors import LLEnvsError


class UnsupportedEnvironment(LLEnvsError):
    """A taskset that works, but not here; the message says why and what would help."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"verifiers_v1/{name} cannot be stepped: {reason}")
