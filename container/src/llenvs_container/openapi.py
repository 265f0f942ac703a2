"""The OpenAPI description of the HTTP routes, from the models that check the requests."""

from __future__ import annotations

from typing import Any

from llenvs import __version__
from llenvs_container.requests import (
    ComputeRewardsRequest,
    Request,
    ResetRequest,
    StepBatchRequest,
    StepRequest,
    TasksRequest,
)

_POST: dict[str, tuple[type[Request], str, str]] = {
    "/reset": (ResetRequest, "Begin an episode", "state, its key, info"),
    "/step": (
        StepRequest,
        "Take an action in a state",
        "next_state, its key, rewards, terminated, truncated, info",
    ),
    "/step_batch": (StepBatchRequest, "Take many steps", "results: for each step its answer (ok) or its error"),
    "/compute_rewards": (ComputeRewardsRequest, "The signals of a step already taken", "rewards"),
}
_GET = {
    "/health": ("Whether the server runs; needs no token", "status"),
    "/spec": (
        "What is served",
        "spec, num_tasks, tools, reset_options, sealed, max_request_bytes, versions, protocol",
    ),
    "/length": ("Number of tasks", "length"),
    "/tools": ("Tools that observations may offer", "tools, with JSON Schemas of their arguments"),
    "/tasks": ("A page of the tasks", "tasks: task_index and first observation; total"),
    "/metrics": ("Figures in the text format of Prometheus", ""),
    "/openapi.json": ("This document", ""),
}
_ERRORS = {
    "400": "The request is malformed; the message names the field.",
    "401": "The bearer token is missing or wrong.",
    "409": "The server no longer holds the state of this key; send the state itself.",
    "413": "The body is too large.",
    "422": "The environment refuses it: unknown option, task index out of range, episode over, state refused, ...",
    "429": "The queue is full; try again later.",
    "500": "The benchmark's own code failed.",
    "504": "It took too long.",
}


def openapi_document() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    schemas: dict[str, Any] = {"Error": _error_schema()}
    paths: dict[str, Any] = {}
    for path, (model, summary, answer) in _POST.items():
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
        body = {"required": True, "content": _content({"$ref": f"#/components/schemas/{model.__name__}"})}
        paths[path] = {"post": {"summary": summary, "requestBody": body, "responses": _responses(answer)}}
    for path, (summary, answer) in _GET.items():
        paths[path] = {"get": {"summary": summary, "responses": _responses(answer)}}
    paths["/tasks"]["get"]["parameters"] = [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in TasksRequest.model_json_schema()["properties"].items()
    ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "LLEnvs environment server",
            "version": __version__,
            "description": "One environment without sessions: a request carries the state or its key. Values are "
            'JSON; what JSON lacks is an object with one key that starts with $, e.g. {"$tuple": [1, 2]}. '
            "The same operations run pipelined over the WebSocket /channel.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _responses(answer: str) -> dict[str, Any]:
    error = _content({"$ref": "#/components/schemas/Error"})
    return {
        "200": {"description": answer or "OK"},
        **{status: {"description": text, "content": error} for status, text in _ERRORS.items()},
    }


def _error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    error = {
        "type": "object",
        "required": ["type", "ancestors", "message", "attributes"],
        "properties": {
            "type": {**text, "description": "The class of the error."},
            "ancestors": {"type": "array", "items": text, "description": "Its base classes, nearest first."},
            "message": {**text, "description": "For a person."},
            "attributes": {"type": "object", "description": "What the message was made of."},
        },
    }
    return {"type": "object", "required": ["error"], "properties": {"error": error}}
