"""HTTP to the embedded server: JSON posts and streamed completions, with errors of our family."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from llenvs.inference.errors import (
    BackendError,
    BackendTimeout,
    BadRequest,
    ConnectionFailed,
    ContextOverflow,
    ProviderFailed,
)

if TYPE_CHECKING:
    import httpx

NAME = "llamacpp"


class EngineClient:
    """Speaks to one server from one event loop."""

    def __init__(self, url: str, api_key: str, timeout: float | None) -> None:
        import httpx

        self._httpx = httpx
        self._timeout = timeout
        # The server closes a connection after every streamed answer without announcing it, so that a kept one
        # fails at its next use: a connection for each request, which costs 0.3 ms on the loopback device.
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {api_key}", "Connection": "close"},
            timeout=httpx.Timeout(timeout, connect=30.0),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            trust_env=False,  # no proxy between this process and itself
        )

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that comes back for the JSON `body`."""
        try:
            response = await self._http.post(path, json=body)
        except self._httpx.HTTPError as error:
            raise self._transport_error(error) from error
        if response.status_code != 200:
            raise _refusal(response.status_code, response.text)
        return response.json()

    async def get(self, path: str) -> Any:
        """The JSON at `path`."""
        try:
            response = await self._http.get(path)
        except self._httpx.HTTPError as error:
            raise self._transport_error(error) from error
        if response.status_code != 200:
            raise _refusal(response.status_code, response.text)
        return response.json()

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a streamed answer. Leaving the iteration early closes the connection, on which the server
        stops generating."""
        try:
            async with self._http.stream("POST", path, json={**body, "stream": True}) as response:
                if response.status_code != 200:
                    raise _refusal(response.status_code, (await response.aread()).decode("utf-8", "replace"))
                async for line in response.aiter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        chunk = json.loads(line[6:])
                        if "error" in chunk:
                            raise _refusal(int(chunk["error"].get("code", 500)), line[6:])
                        yield chunk
                    elif line.startswith("error: "):
                        raise _refusal(500, line[7:])
        except self._httpx.HTTPError as error:
            raise self._transport_error(error) from error

    async def aclose(self) -> None:
        """Close the connections; requests under way fail."""
        await self._http.aclose()

    def _transport_error(self, error: httpx.HTTPError) -> BackendError:
        if isinstance(error, self._httpx.TimeoutException):
            return BackendTimeout(NAME, f"no answer within timeout={self._timeout} s")
        return ConnectionFailed(NAME, f"the embedded server hung up ({error or type(error).__name__})")


def _refusal(status: int, text: str) -> BackendError:
    try:
        problem = json.loads(text)["error"]
        message, kind = str(problem["message"]), problem.get("type", "")
    except (ValueError, KeyError, TypeError):
        message, kind, problem = text[:500], "", {}
    if kind == "exceed_context_size_error":
        return ContextOverflow(
            NAME,
            f"the prompt has {problem.get('n_prompt_tokens')} tokens, a request's context {problem.get('n_ctx')} "
            "(set by n_ctx)",
        )
    if 400 <= status < 500:
        return BadRequest(NAME, message)
    return ProviderFailed(NAME, f"llama.cpp answered {status}: {message}")
