"""What HTTP statuses and headers of model providers mean, as the errors of the backends."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any

from llenvs.inference.errors import (
    AuthenticationFailed,
    BackendError,
    BackendTimeout,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    ModelNotFound,
    ProviderFailed,
    QuotaExhausted,
    RateLimited,
)

_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOW_TEXTS = (
    "maximum context length",
    "context size",
    "context window",
    "context_length",
    "prompt is too long",
    "context limit",
)
_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
_QUOTA_TEXTS = ("credit balance is too low",)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ask to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or as a date
    (RFC 9110, 10.2.3). None when they ask nothing that can be read. Names are in lower case."""
    milliseconds = headers.get("retry-after-ms")
    value = headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if value is None:
            return None
        return max(0.0, float(value))
    except ValueError:
        parsed = email.utils.parsedate_tz(value or "")
        return None if parsed is None else max(0.0, email.utils.mktime_tz(parsed) - time.time())


def failure_of_status(
    status: int,
    *,
    backend: str,
    message: str,
    codes: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
    model: str = "",
    base_url: str = "",
    forbidden: type[BackendError] = AuthenticationFailed,
) -> BackendError:
    """The error for an answer of `status`, or for an error inside an answer that carries such a number.

    Args:
        status: of HTTP.
        backend: that asked.
        message: what the server says.
        codes: the server's own names for what went wrong.
        headers: of the answer, names in lower case.
        model, base_url: that were asked for.
        forbidden: what status 403 means to this provider.
    """
    wait = retry_after(headers or {})
    if status == 403 and forbidden is not AuthenticationFailed:
        return forbidden(backend, message)
    failure = _failure(status, backend, message, {*codes}, wait, model, base_url)
    if (headers or {}).get("x-should-retry") == "false":
        failure.retryable = False
    return failure


def _failure(
    status: int, backend: str, message: str, codes: set[str], wait: float | None, model: str, base_url: str
) -> BackendError:
    said = message.lower()
    if codes & _FILTER_CODES:
        return ContentFiltered(backend, message)
    if status == 402 or codes & _QUOTA_CODES or any(text in said for text in _QUOTA_TEXTS):
        return QuotaExhausted(backend, message)
    if status in (401, 403):
        return AuthenticationFailed(backend, f"the server refuses the key or the right to the model: {message}")
    if status == 404 and not base_url:
        return ModelNotFound(backend, message)
    if status == 404:
        about_model = "model" in said or any("model" in code for code in codes)
        what = f"{base_url} knows no model {model!r}" if about_model else f"nothing at {base_url}"
        return ModelNotFound(backend, f"{what} ({message})")
    if status == 408:
        return BackendTimeout(backend, message)
    if status == 429:
        return RateLimited(backend, message, wait)
    if status in (400, 413, 422):
        overflow = codes & _OVERFLOW_CODES or any(text in said for text in _OVERFLOW_TEXTS)
        return ContextOverflow(backend, message) if overflow else BadRequest(backend, message)
    if 405 <= status < 500 and status not in (409, 425):
        return BadRequest(backend, f"the server answered {status}: {message}")
    return ProviderFailed(backend, f"the server answered {status}: {message}", wait)


def failure_without_status(
    error: Exception, sdk: Any, *, backend: str, base_url: str, timeout: float | None
) -> BackendError:
    """The error for what an SDK raised when there was no answer, or none that it could read.

    Args:
        error: of the SDK.
        sdk: its module. Those of OpenAI and Anthropic come from one generator and name their errors alike.
        backend, base_url: that asked, and what.
        timeout: seconds that it waited.
    """
    if isinstance(error, sdk.APITimeoutError):
        return BackendTimeout(backend, f"no answer from {base_url} within timeout={timeout} s")
    if isinstance(error, sdk.APIConnectionError):
        return ConnectionFailed(backend, f"no server answers at {base_url} ({innermost(error)})")
    if isinstance(error, sdk.APIResponseValidationError | ValueError):
        return ProviderFailed(backend, f"the answer of {base_url} cannot be read: {error}")
    return ProviderFailed(backend, f"{type(error).__name__}: {error}")


def innermost(error: BaseException) -> str:
    """What the first cause of `error` says: the HTTP libraries wrap the system's own words several times."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return str(error) or type(error).__name__
