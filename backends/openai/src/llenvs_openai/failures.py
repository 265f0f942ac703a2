"""From the SDK's exceptions, and errors inside answers, to the errors of the backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llenvs.inference.errors import AuthenticationFailed, BackendError, BadRequest
from llenvs.inference.http_failures import failure_of_status, failure_without_status

if TYPE_CHECKING:
    import openai

_PARAMETER_CODES = {"unsupported_parameter", "unsupported_value", "unknown_parameter", "invalid_value"}


def failure_of(
    error: Exception,
    *,
    backend: str,
    model: str,
    base_url: str,
    timeout: float | None,
    forbidden: type[BackendError] = AuthenticationFailed,
) -> BackendError:
    """The error of ours for what the SDK raised; `forbidden` is what status 403 means."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, backend, model, base_url, forbidden)
    return failure_without_status(error, openai, backend=backend, base_url=base_url, timeout=timeout)


def failure_in_answer(
    backend: str, error: Any, forbidden: type[BackendError] = AuthenticationFailed
) -> BackendError:
    """The error of ours for an error that came inside an answer of status 200."""
    details = error if isinstance(error, Mapping) else {"message": error}
    message = f"the provider reports {details.get('message') or details}"
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if raw:  # what the provider behind the router said
        message += f" ({str(raw)[:300]})"
    code = details.get("code")
    status = code if isinstance(code, int) else 500
    return failure_of_status(
        status, backend=backend, message=message, codes=(str(code or ""),), forbidden=forbidden
    )


def _status_failure(
    error: openai.APIStatusError, backend: str, model: str, base_url: str, forbidden: type[BackendError]
) -> BackendError:
    body = error.body if isinstance(error.body, Mapping) else {}
    # (a body that is no JSON, or not OpenAI's kind of it, is shown as it is)
    message = str(body.get("message") or error.response.text.strip() or error.message)[:500]
    codes = (str(body.get("code") or ""), str(body.get("type") or ""))
    if error.status_code == 400 and {*codes} & _PARAMETER_CODES and body.get("param"):
        return BadRequest(backend, f"model {model} refuses the parameter {body['param']!r}: {message}")
    return failure_of_status(
        error.status_code,
        backend=backend,
        message=message,
        codes=codes,
        headers=error.response.headers,
        model=model,
        base_url=base_url,
        forbidden=forbidden,
    )
