"""From the SDK's exceptions to the errors of the backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llenvs.inference.errors import BackendError, BackendTimeout, BadRequest, ConnectionFailed
from llenvs.inference.http_failures import failure_of_status, failure_without_status, innermost

if TYPE_CHECKING:
    import anthropic

# errors inside a stream come with its status 200, and with these words; the statuses are those of the API's
# documentation
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def failure_of(
    error: Exception, *, backend: str, model: str, base_url: str, timeout: float | None
) -> BackendError:
    """The error of ours for what the SDK raised."""
    import anthropic
    import httpx2

    if isinstance(error, anthropic.APIStatusError):
        return _status_failure(error, backend, model, base_url)
    if isinstance(error, httpx2.HTTPError):  # while a streamed answer is read, the SDK lets them through
        kind = BackendTimeout if "Timeout" in type(error).__name__ else ConnectionFailed
        return kind(backend, f"the answer of {base_url} broke off ({innermost(error)})")
    return failure_without_status(error, anthropic, backend=backend, base_url=base_url, timeout=timeout)


def _status_failure(error: anthropic.APIStatusError, backend: str, model: str, base_url: str) -> BackendError:
    body = error.body if isinstance(error.body, Mapping) else {}
    inner: Any = body.get("error")
    inner = inner if isinstance(inner, Mapping) else {}
    kind = str(inner.get("type") or "")
    message = str(inner.get("message") or _text(error) or error.message)[:500]
    status = error.status_code if error.status_code >= 400 else _STATUS_OF_TYPE.get(kind, 500)
    if status == 413 and kind == "request_too_large":
        return BadRequest(backend, f"the request is too large: {message}")
    return failure_of_status(
        status,
        backend=backend,
        message=message,
        codes=(kind, error.error_code or ""),
        headers=error.response.headers,
        model=model,
        base_url=base_url,
    )


def _text(error: anthropic.APIStatusError) -> str:
    return str(error.body).strip() if isinstance(error.body, str) else ""
