"""From the SDK's exceptions, and errors inside answers, to the errors of the backends."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import openai

_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOW_TEXTS = ("maximum context length", "context size", "context window", "context_length")
_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_PARAMETER_CODES = {"unsupported_parameter", "unsupported_value", "unknown_parameter", "invalid_value"}


def failure_of(
    error: Exception, *, backend: str, model: str, base_url: str, timeout: float | None
) -> BackendError:
    """The error of ours for what the SDK raised."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return BackendTimeout(backend, f"no answer from {base_url} within timeout={timeout} s")
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, backend, model, base_url)
    if isinstance(error, openai.APIConnectionError):
        return ConnectionFailed(backend, f"no server answers at {base_url} ({_innermost(error)})")
    if isinstance(error, openai.APIResponseValidationError | ValueError):
        return ProviderFailed(backend, f"the answer of {base_url} cannot be read: {error}")
    return ProviderFailed(backend, f"{type(error).__name__}: {error}")


def failure_in_answer(backend: str, error: Any) -> BackendError:
    """The error of ours for an error that came inside an answer of status 200."""
    details = error if isinstance(error, Mapping) else {"message": error}
    message = f"the provider reports {details.get('message') or details}"
    code = details.get("code")
    status = code if isinstance(code, int) else 500
    made = _by_status(status, backend, message, str(code or ""), None)
    return made if made is not None else ProviderFailed(backend, message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ask to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or as a date
    (RFC 9110, 10.2.3). None when they ask nothing that can be read."""
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


def _status_failure(error: openai.APIStatusError, backend: str, model: str, base_url: str) -> BackendError:
    body = error.body if isinstance(error.body, Mapping) else {}
    # (a body that is no JSON, or not OpenAI's kind of it, is shown as it is)
    message = str(body.get("message") or error.response.text.strip() or error.message)[:500]
    code = str(body.get("code") or body.get("type") or "")
    kind = str(body.get("type") or "")
    status = error.status_code
    wait = retry_after(error.response.headers)
    made: BackendError | None
    if status == 400 and {code, kind} & _PARAMETER_CODES and body.get("param"):
        made = BadRequest(backend, f"model {model} refuses the parameter {body['param']!r}: {message}")
    elif status == 404:
        what = (
            f"{base_url} knows no model {model!r}"
            if "model" in (code + message).lower()
            else f"nothing at {base_url}"
        )
        made = ModelNotFound(backend, f"{what} ({message})")
    else:
        made = _by_status(status, backend, message, kind if kind in _OVERFLOW_CODES else code, wait)
    if made is None:
        made = ProviderFailed(backend, f"the server answered {status}: {message}", wait)
    if error.response.headers.get("x-should-retry") == "false":
        made.retryable = False
    return made


def _by_status(status: int, backend: str, message: str, code: str, wait: float | None) -> BackendError | None:
    if code in _FILTER_CODES:
        return ContentFiltered(backend, message)
    if code in _QUOTA_CODES or status == 402:
        return QuotaExhausted(backend, message)
    if status in (401, 403):
        return AuthenticationFailed(backend, f"the server refuses the key or the right to the model: {message}")
    if status == 408:
        return BackendTimeout(backend, message)
    if status == 429:
        return RateLimited(backend, message, wait)
    if status in (400, 413, 422):
        overflow = code in _OVERFLOW_CODES or any(text in message.lower() for text in _OVERFLOW_TEXTS)
        return ContextOverflow(backend, message) if overflow else BadRequest(backend, message)
    if 405 <= status < 500 and status not in (409, 425):
        return BadRequest(backend, f"the server answered {status}: {message}")
    return None


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return str(error) or type(error).__name__
