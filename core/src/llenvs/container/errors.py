"""What can go wrong between a client and a server, and how errors cross the wire.

An error travels as ``{"type": name, "ancestors": [names], "message": text, "attributes": {name: value}}`` and
comes out as the class of that name, with its message and attributes. A class that is not known here (of an adapter
that is not installed) becomes its nearest known ancestor. Classes are looked up, never imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llenvs.core.encoding import decode, encode
from llenvs.core.errors import ContainerFailed, EncodingFailed, LLEnvsError


class ConnectionLost(ContainerFailed):
    """The connection broke, or could not be made; the server may be gone."""


class NotSent(ConnectionLost):
    """The connection was gone before the request was sent, which therefore has no part in it."""


class ServerKilled(ContainerFailed):
    """A signal ended the server before it was ready; another attempt may go well."""


class RequestRefused(ContainerFailed):
    """The server does not take the request: no JSON, unknown fields, too large, or without the right token."""


class RequestTimedOut(ContainerFailed):
    """No answer within the time limit."""


class ServerBusy(ContainerFailed):
    """The server's queue is full; the same request may succeed later."""


class StateMissing(ContainerFailed):
    """The server no longer holds the state of this key: send the state itself."""


class StateRefused(ContainerFailed):
    """A sealed state that was altered, or sealed for another environment or with another key."""


def error_to_wire(error: LLEnvsError) -> dict[str, Any]:
    """`error` as JSON data. Attributes without an exact JSON form are sent as their `repr`."""
    classes = [cls.__name__ for cls in type(error).__mro__ if issubclass(cls, LLEnvsError)]
    return {
        "type": classes[0],
        "ancestors": classes[1:],
        "message": str(error),
        "attributes": {name: _encoded(value) for name, value in vars(error).items()},
    }


def _encoded(value: Any) -> Any:
    try:
        return encode(value)
    except EncodingFailed:
        return repr(value)


def error_from_wire(data: Any) -> LLEnvsError:
    """The error that `error_to_wire` turned into `data`; never raises."""
    if not isinstance(data, Mapping) or not isinstance(data.get("message"), str):
        return ContainerFailed(f"the server sent an error that makes no sense: {str(data)[:200]}")
    ancestors = data.get("ancestors")
    names = [data.get("type"), *(ancestors if isinstance(ancestors, list) else ())]
    known = {cls.__name__: cls for cls in _family(LLEnvsError)}
    cls = next((known[name] for name in names if isinstance(name, str) and name in known), LLEnvsError)
    # constructors differ and would write the message anew, so they are not called
    error = cls.__new__(cls, data["message"])
    try:
        attributes = decode(dict(data.get("attributes") or {}))
    except (EncodingFailed, TypeError, ValueError):
        attributes = {}
    if isinstance(attributes, dict):  # what was an object may decode to anything
        error.__dict__.update((name, value) for name, value in attributes.items() if isinstance(name, str))
    return error


def _family(cls: type[LLEnvsError]) -> Iterator[type[LLEnvsError]]:
    # ours last, so that a class of the same name elsewhere does not hide one of the core
    subclasses = sorted(cls.__subclasses__(), key=lambda c: c.__module__.startswith("llenvs."))
    for sub in subclasses:
        yield from _family(sub)
    yield cls
