"""What can go wrong with an engine that lives in this process."""

from __future__ import annotations

from llenvs.inference.errors import BackendError


class EngineUnavailable(BackendError):
    """llama.cpp cannot run here, or cannot load the model with these settings."""

    fatal = True
