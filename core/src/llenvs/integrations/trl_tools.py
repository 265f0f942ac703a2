"""Tool definitions as Python methods, in the form that `transformers` reads back into a schema."""

from __future__ import annotations

import inspect
import json
import keyword
import re
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


# `transformers` ends a description at these words, wherever they stand
_SECTION = re.compile(r"\b(Args|Returns|Raises):")


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
    definitions = tool.parameters.get("$defs") or tool.parameters.get("definitions") or {}
    schemas = {
        name: _inlined(schema, definitions) for name, schema in dict(tool.parameters.get("properties", {})).items()
    }
    required = set(tool.parameters.get("required", ()))
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name in sorted(schemas, key=lambda each: each not in required):
        if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
            raise InvalidOption(
                "env",
                f"{tool.name}({name})",
                "is no name that an argument of a Python method can have",
                valid="for this environment use make_trl_rollout_fn",
            )
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in required else None,
                annotation=python_type(schemas[name]),
            )
        )

    def method(self: Any, **arguments: Any) -> str:
        return call(self, tool.name, arguments)

    method.__name__ = tool.name
    method.__qualname__ = tool.name
    method.__doc__ = _docstring(tool, {each.name: schemas[each.name] for each in parameters[1:]})
    method.__annotations__ = {each.name: each.annotation for each in parameters[1:]} | {"return": str}
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method


def python_type(schema: Any) -> Any:
    """The type hint that says most of a JSON Schema: enum as Literal, array as list[T], nullable as Optional.

    Args:
        schema: without references.
    """
    hint = _plain_type(schema)
    if isinstance(schema, Mapping) and schema.get("nullable") is True and hint is not Any:
        return Optional[hint]  # noqa: UP045 - the hint is a value here
    return hint


def _plain_type(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return Any
    named = _choices(schema)
    if named:
        hint = _LITERAL[named]
        return Optional[hint] if None in schema["enum"] else hint  # noqa: UP045 - as above
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


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of an enum that a Literal can say, None aside; () where it cannot say all of them."""
    values = tuple(value for value in schema.get("enum", ()) if value is not None)
    return values if all(isinstance(value, str | int | bool) for value in values) else ()


def _inlined(schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...] = ()) -> Any:
    """`schema` with what its references (``#/$defs/...``) refer to in their place.

    A type that holds itself stays a reference inside of itself.
    """
    if isinstance(schema, list | tuple):
        return [_inlined(each, definitions, inside) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and name in definitions and name not in inside:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inlined(definitions[name], definitions, (*inside, name)), **beside}
    return {key: _inlined(value, definitions, inside) for key, value in schema.items()}


def _docstring(tool: ToolDefinition, schemas: Mapping[str, Any]) -> str:
    """In Google style, a line for each argument."""
    lines = [_one_line(tool.description) or tool.name]
    if schemas:
        lines += ["", "Args:", *(f"    {name}: {_described(name, schema)}" for name, schema in schemas.items())]
    return "\n".join([*lines, "", "Returns:", "    What the environment answers."])


_SAID_BY_HINT = {"type", "description", "title", "default", "nullable"}


def _described(name: str, schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return name
    text = _one_line(str(schema.get("description", "")))
    lost = {key: value for key, value in schema.items() if key not in _SAID_BY_HINT}
    if _choices(schema) or not lost.get("enum", True):
        lost.pop("enum", None)
    items = lost.get("items")
    if isinstance(items, Mapping) and not set(items) - {"type"}:
        del lost["items"]
    if schema.get("default") is not None:
        text = f"{text} Default: {json.dumps(schema['default'], ensure_ascii=False)}.".strip()
    if lost:
        written = json.dumps(lost, ensure_ascii=False, sort_keys=True, default=str)
        text = f"{text} JSON Schema: {_SECTION.sub(_apart, written)}".strip()
    # transformers takes "(choices: ...)" at the end of a description for an enum of its own
    return text + "." if text.endswith(")") and "(choices:" in text else text or name


def _one_line(text: str) -> str:
    return _SECTION.sub(_apart, " ".join(text.split()))


def _apart(found: re.Match[str]) -> str:
    return f"{found[1]} :"
