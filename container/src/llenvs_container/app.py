"""The HTTP side of the server: routes, bodies, status codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from llenvs.container.errors import RequestRefused, RequestTimedOut, ServerBusy, StateMissing, error_to_wire
from llenvs.core.errors import LLEnvsError, UpstreamFailed
from llenvs_container.dispatcher import Dispatcher
from llenvs_container.gate import Gate, Gatekeeper
from llenvs_container.openapi import openapi_document

_STATUS: tuple[tuple[type[LLEnvsError], int], ...] = (
    (RequestRefused, 400),
    (ServerBusy, 429),
    (RequestTimedOut, 504),
    (StateMissing, 409),
    (UpstreamFailed, 500),
)
_BODY_TIMEOUT = 30.0
"""Seconds in which the body of a request must come; a large one may take longer at a megabyte a second."""


class BodyTooLarge(RequestRefused):
    """The body exceeds the limit."""


def build_app(
    dispatcher: Dispatcher, *, gatekeeper: Gatekeeper, max_request_bytes: int, max_connections: int
) -> ASGIApp:
    """The ASGI application.

    Args:
        dispatcher: answers the requests.
        gatekeeper: says who may come in.
        max_request_bytes: longer bodies get 413.
        max_connections: shown in the metrics.
    """

    def posting(operation: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await _answered(lambda: _post(request, operation))

        return endpoint

    async def _post(request: Request, operation: str) -> Response:
        data = _parsed(await _body(request, max_request_bytes))
        return _json(await dispatcher.answer(operation, data))

    async def spec(request: Request) -> Response:
        return await _answered(lambda: _describe())

    async def _describe() -> Response:
        return _json(await dispatcher.answer("describe", {}))

    async def length(request: Request) -> Response:
        return await _answered(lambda: _length())

    async def _length() -> Response:
        return JSONResponse({"length": json.loads(await dispatcher.answer("describe", {}))["num_tasks"]})

    async def tools(request: Request) -> Response:
        return await _answered(lambda: _tools())

    async def _tools() -> Response:
        described = json.loads(await dispatcher.answer("describe", {}))
        found = [tool["$ToolDefinition"] for tool in described["tools"]["$tuple"]]
        return JSONResponse({"tools": found})

    async def tasks(request: Request) -> Response:
        return await _answered(lambda: _tasks(request))

    async def _tasks(request: Request) -> Response:
        return _json(await dispatcher.answer("tasks", _query(request)))

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        cache, workers = dispatcher.service.cache, dispatcher.workers
        gauges = {
            "requests_in_flight": ("Requests without an answer yet.", float(dispatcher.in_flight)),
            "queue_length": ("Requests that wait for a thread.", float(workers.waiting)),
            "threads_busy": ("Threads that run environment code.", float(workers.awake)),
            "states_held": ("States held by key.", float(len(cache))),
            "states_held_bytes": ("Bytes of JSON of the states held.", float(cache.bytes)),
            "state_hits_total": ("Requests whose state was held.", float(cache.hits)),
            "state_misses_total": ("Requests whose state was no longer held.", float(cache.misses)),
            "connections_max": ("Connections allowed.", float(max_connections)),
        }
        return Response(dispatcher.metrics.render(gauges), media_type="text/plain; version=0.0.4")

    async def openapi(request: Request) -> Response:
        return JSONResponse(openapi_document())

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/metrics", metrics),
            Route("/openapi.json", openapi),
            Route("/spec", spec),
            Route("/length", length),
            Route("/tools", tools),
            Route("/tasks", tasks),
            *(
                Route(f"/{operation}", posting(operation), methods=["POST"])
                for operation in ("reset", "step", "step_batch", "compute_rewards")
            ),
        ]
    )
    return Gate(app, gatekeeper)


async def _answered(endpoint: Callable[[], Awaitable[Response]]) -> Response:
    try:
        return await endpoint()
    except LLEnvsError as error:
        status = next((code for cls, code in _STATUS if isinstance(error, cls)), 422)
        if isinstance(error, BodyTooLarge):
            status = 413
        headers = {"Retry-After": "1"} if status == 429 else None
        return JSONResponse({"error": error_to_wire(error)}, status_code=status, headers=headers)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


async def _body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    length = int(declared) if declared.isascii() and declared.isdigit() else 0
    if length > limit:
        raise BodyTooLarge(f"the body has {length} bytes, the limit is {limit}")
    chunks, size = [], 0
    try:
        async with asyncio.timeout(max(_BODY_TIMEOUT, length / 1e6)):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise BodyTooLarge(f"the body has more than the allowed {limit} bytes")
                chunks.append(chunk)
    except TimeoutError:
        raise RequestTimedOut("the body of the request did not come in time") from None
    except ClientDisconnect:
        raise RequestRefused("the client hung up before the whole body came") from None
    return b"".join(chunks)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise RequestRefused(f"the request is malformed: no JSON: {str(error)[:200]}") from None


def _query(request: Request) -> dict[str, Any]:
    values: dict[str, Any] = dict(request.query_params)
    return {
        key: int(value) if value.isascii() and value.isdigit() and len(value) < 19 else value
        for key, value in values.items()
    }
