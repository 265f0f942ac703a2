"""Tool definitions as Python methods, in the form that `transformers` reads back into a schema."""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Callable, Mapping
from typing import Any, Literal, Optional, Union

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolDefinition

_TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": type(None),
}
_LITERAL: Any = Literal  # as values, not as hints
_LIST: Any = list
_TAKEN = ("reset", "get_reward")


def tool_method(tool: ToolDefinition, call: Callable[..., str]) -> Callable[..., str]:
    """A method that looks like `tool` to TRL: name, keyword-only signature, type hints and a Google docstring.

    TRL makes the schema that the model reads from these, so what a Python signature cannot say (properties of
    nested objects, limits of numbers, patterns) is put into the description of the argument, as JSON Schema.

    Args:
        tool: its parameters are a JSON Schema of an object.
        call: what the method does: ``call(self, name, arguments)``.

    Raises:
        InvalidOption: the name of the tool or of an argument cannot be that of a method.
    """
    if tool.name in _TAKEN or tool.name.startswith("_") or not tool.name:
        raise InvalidOption(
            "env",
            tool.name,
            "is no name that a tool of a TRL environment can have (TRL keeps reset and get_reward for itself and "
            "leaves out what begins with _)",
            valid="for this environment use make_trl_rollout_fn",
        )
    properties = dict(tool.parameters.get("properties", {}))
    required = set(tool.parameters.get("required", ()))
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    annotations: dict[str, Any] = {}
    lines = [_one_line(tool.description) or tool.name]
    if properties:
        lines += ["", "Args:"]
    for name in sorted(properties, key=lambda each: each not in required):
        if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
            raise InvalidOption(
                "env",
                f"{tool.name}({name})",
                "is no name that an argument of a Python method can have",
                valid="for this environment use make_trl_rollout_fn",
            )
        schema = properties[name]
        annotations[name] = python_type(schema)
        default = inspect.Parameter.empty if name in required else None
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotations[name])
        )
        lines.append(f"    {name}: {_described(name, schema)}")

    def method(self: Any, **arguments: Any) -> str:
        return call(self, tool.name, arguments)

    annotations["return"] = str
    lines += ["", "Returns:", "    What the environment answers."]
    method.__name__ = tool.name
    method.__qualname__ = tool.name
    method.__doc__ = "\n".join(lines)
    method.__annotations__ = annotations
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method


def python_type(schema: Any) -> Any:
    """The type hint that says most of a JSON Schema: enum as Literal, array as list[T], nullable as Optional."""
    if not isinstance(schema, Mapping):
        return Any
    if "enum" in schema:
        values = tuple(schema["enum"])
        named = tuple(value for value in values if isinstance(value, str | int | bool))
        if named and len(named) == len([value for value in values if value is not None]):
            hint = _LITERAL[named]
            return Optional[hint] if None in values else hint  # noqa: UP045 - the hint is a value here
    several = schema.get("anyOf") or schema.get("oneOf")
    kinds = schema.get("type")
    if isinstance(kinds, list):
        several = [{**schema, "type": kind} for kind in kinds]
    if several:
        hints = tuple(dict.fromkeys(python_type(each) for each in several))
        return Any if Any in hints else Union[hints]  # noqa: UP007
    if kinds == "array":
        inner = python_type(schema.get("items"))
        return list if inner is Any else _LIST[inner]
    return _TYPES.get(str(kinds), Any)


_SAID_BY_HINT = {"type", "description", "title", "enum", "default"}


def _described(name: str, schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return name
    text = _one_line(str(schema.get("description", "")))
    lost = {key: value for key, value in schema.items() if key not in _SAID_BY_HINT}
    items = lost.get("items")
    if isinstance(items, Mapping) and not set(items) - {"type"}:
        del lost["items"]
    if "default" in schema and schema["default"] is not None:
        text = f"{text} Default: {json.dumps(schema['default'], ensure_ascii=False)}.".strip()
    if lost:
        text = f"{text} JSON Schema: {json.dumps(lost, ensure_ascii=False, sort_keys=True)}".strip()
    # transformers takes "(choices: ...)" at the end of a description for an enum of its own
    return text.rstrip(") ") + ")." if text.endswith(")") and "(choices:" in text else text or name


def _one_line(text: str) -> str:
    return " ".join(text.split())
