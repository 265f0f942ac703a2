"""Actions for environments that the kit knows nothing about."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from llenvs.core.action import Action
from llenvs.core.state import State
from llenvs.core.tools import ToolCall, ToolDefinition

ORDINARY_TEXTS = (
    "42",
    "<answer>42</answer>",
    "yes",
    "A",
    "look",
    "I do not know.",
    "The answer is 7.",
    "\\boxed{1/2}",
)
"""What a model may well say."""

ODD_TEXTS = (
    "",
    " \n\t ",
    "nan",
    "-1e999",
    "0" * 400,
    "naïve café Привет 数学 \U0001f600 \u202e\u0000",
    "<answer><answer></answer>",
    "{'a': [1, (2, {3})]}",
    '{"unclosed": [',
    "%s %d {} {0} {x} \\",
    "a\r\nb\r\n" * 50,
    "word " * 20_000,
)
"""What a model should not say, and sometimes does."""


def ordinary_action(state: State[Any], rng: random.Random) -> Action:
    """A text, or a call of one of the tools that the observation offers."""
    tools = state.observation.available_tools
    if tools and rng.random() < 0.7:
        tool = rng.choice(tools)
        return Action(tool_calls=(ToolCall(tool.name, plausible_arguments(tool), "call_0"),))
    return Action(rng.choice(ORDINARY_TEXTS))


def odd_actions(state: State[Any]) -> list[Action]:
    """Actions that no environment wants; none of them may make it fail."""
    actions = [Action(text) for text in ODD_TEXTS]
    actions.append(Action.from_tool_call("no_such_tool", {"x": 1}))
    for tool in state.observation.available_tools[:3]:
        actions.append(Action.from_tool_call(tool.name))
        actions.append(Action.from_tool_call(tool.name, {"no_such_argument": None}))
        actions.append(Action(tool_calls=(ToolCall(tool.name, plausible_arguments(tool), ""),) * 2))
    return actions


def plausible_arguments(tool: ToolDefinition) -> dict[str, Any]:
    """Arguments that fit the types in the JSON Schema of `tool`."""
    properties = tool.parameters.get("properties", {})
    return {name: _plausible(schema) for name, schema in properties.items()}


def _plausible(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "a"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for alternatives in ("anyOf", "oneOf"):
        if schema.get(alternatives):
            return _plausible(schema[alternatives][0])
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        return {name: _plausible(inner) for name, inner in schema.get("properties", {}).items()}
    values: dict[Any, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}
    return values.get(kind, "a")
