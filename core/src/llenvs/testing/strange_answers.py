"""Answers of servers that hold something else where their API has objects, texts and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llenvs.core.encoding import canonical
from llenvs.inference.backend import Backend
from llenvs.inference.errors import BackendError
from llenvs.testing.replay import ReplayServer, Reply

STRANGE: tuple[Any, ...] = (None, "x", 5, 1.5, True, [], [1], [None], ["x"], [[]], {"a": 1})
"""One of each kind of JSON value, in places where another is meant."""


def check_strange_answers(backend: Backend, server: ReplayServer, bodies: Iterable[Any]) -> None:
    """Check that each of `bodies` is an error of the backend, or a generation with values of the right types.

    Args:
        backend: asks `server`, and tries once.
        server: answers.
        bodies: JSON data.

    Raises:
        AssertionError: naming the body. (Any other exception is one that the backend lets through.)
    """
    for body in bodies:
        server.answers(Reply(200, body))
        try:
            generation = backend.chat("hi")
        except BackendError:
            continue
        assert isinstance(generation.text, str), body
        assert all(isinstance(each.id, str) and isinstance(each.name, str) for each in generation.tool_calls), body
        assert generation.usage.total_tokens >= 0, body
        canonical(generation.metadata)
