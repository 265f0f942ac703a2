"""What a request's tool choice means for an engine that takes grammars."""

from __future__ import annotations

from llenvs.inference.errors import BadRequest
from llenvs.inference.request import GenerationRequest
from llenvs.inference.tool_calls.grammar import call_grammar
from llenvs.inference.tool_calls.parser import ToolCallParser


def forces_a_call(choice: str | None) -> bool:
    """Whether a tool choice leaves the model nothing but to call: "required", or the name of a tool."""
    return choice not in (None, "auto", "none")


def grammar_of_choice(
    request: GenerationRequest, choice: str | None, parser: ToolCallParser, *, backend: str, max_calls: int = 1
) -> str | None:
    """GBNF that forces the call which `choice` demands; the request's own grammar when it demands none.

    Raises:
        BadRequest: no such tool, or the request has another grammar or a schema beside it.
        GrammarImpossible: see `call_grammar`.
    """
    if not forces_a_call(choice) or not request.tools:
        return request.grammar
    if request.grammar is not None or request.json_schema is not None:
        raise BadRequest(backend, f"tool_choice {choice!r} excludes a grammar and a json_schema")
    tools = request.tools
    if choice != "required":
        tools = tuple(tool for tool in tools if tool.name == choice)
        if not tools:
            names = ", ".join(tool.name for tool in request.tools)
            raise BadRequest(backend, f"tool_choice {choice!r} is no tool of the request; valid: {names}")
    return call_grammar(tools, parser, max_calls=max_calls)
