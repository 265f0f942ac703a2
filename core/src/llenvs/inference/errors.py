"""What can go wrong between us and a model. A filtered or cut-off *generation* is a finish reason, no error."""

from __future__ import annotations

from llenvs.core.errors import LLEnvsError


class BackendError(LLEnvsError):
    """Root of the backends' errors.

    Attributes:
        backend: which one.
        retryable: whether the same request may succeed later.
        fatal: whether every further request of a run would fail in the same way (wrong key, wrong model):
            an evaluation stops on it instead of recording the same error for each task.
    """

    retryable = False
    fatal = False

    def __init__(self, backend: str, message: str) -> None:
        self.backend = backend
        super().__init__(f"{backend}: {message}")


class UnsupportedFeature(BackendError):
    """The backend lacks what the request asks for; nothing was sent."""

    fatal = True

    def __init__(self, backend: str, feature: str, detail: str = "") -> None:
        self.feature = feature
        super().__init__(backend, f"does not support {feature}" + (f" ({detail})" if detail else ""))


class AuthenticationFailed(BackendError):
    """Missing or wrong key, or no right to the model."""

    fatal = True


class ModelNotFound(BackendError):
    """The server or disk has no such model."""

    fatal = True


class EngineUnavailable(BackendError):
    """An engine of this process cannot run here, or cannot load the model with these settings."""

    fatal = True


class ContextOverflow(BackendError):
    """Prompt and answer do not fit the model's context."""


class BadRequest(BackendError):
    """The server refuses the request as it is."""


class ContentFiltered(BackendError):
    """The provider refuses the prompt for its content."""


class RateLimited(BackendError):
    """Too many requests or tokens. `retry_after`: seconds the server asks to wait, or None."""

    retryable = True

    def __init__(self, backend: str, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(backend, message)


class QuotaExhausted(BackendError):
    """No credit left; waiting does not help."""

    fatal = True


class BackendTimeout(BackendError):
    """No answer in time."""

    retryable = True


class ConnectionFailed(BackendError):
    """The server cannot be reached, or hung up."""

    retryable = True


class ProviderFailed(BackendError):
    """The server failed (5xx, an answer that makes no sense). `retry_after` as for `RateLimited`."""

    retryable = True

    def __init__(self, backend: str, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(backend, message)
