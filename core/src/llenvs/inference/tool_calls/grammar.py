"""Grammars that leave a model no choice but to call a tool, in GBNF, the notation of llama.cpp.

What JSON Schema demands beyond the shape of the arguments (`format`, numeric bounds, `multipleOf`, `uniqueItems`,
`not`) is not enforced: the executor checks it afterwards. Of `pattern` those are enforced that repeat one plain
character class, such as ``^[0-9+*/() -]{1,60}$``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.errors import LLEnvsError
from llenvs.core.tools import ToolDefinition
from llenvs.inference.tool_calls.parser import ToolCallParser

_CLASS = re.compile(r'\^(\[[^\]\[\\"^][^\]\[\\"]*\])([+*]|\{\d+(?:,\d*)?\})\$')
_PRIMITIVES = {
    "string": 'string ::= "\\"" char* "\\""',
    "char": r'char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" hex hex hex hex)',
    "hex": "hex ::= [0-9a-fA-F]",
    "integer": 'integer ::= "-"? natural',
    "natural": 'natural ::= "0" | [1-9] [0-9]{0,15}',
    "number": 'number ::= integer ("." [0-9]{1,16})?',
    "boolean": 'boolean ::= "true" | "false"',
    "null": 'null ::= "null"',
    "value": "value ::= object | array | string | number | boolean | null",
    "object": 'object ::= "{" (string ": " value (", " string ": " value)*)? "}"',
    "array": 'array ::= "[" (value (", " value)*)? "]"',
}
_NEEDS = {
    "string": ("char",),
    "char": ("hex",),
    "integer": ("natural",),
    "number": ("integer",),
    "value": ("object", "array", "string", "number", "boolean", "null"),
    "object": ("string", "value"),
    "array": ("value",),
}


class GrammarImpossible(LLEnvsError):
    """No grammar can be made: the form of the calls is no JSON, or a schema says what a grammar cannot."""


def call_grammar(tools: Sequence[ToolDefinition], parser: ToolCallParser, *, max_calls: int = 1) -> str:
    """GBNF of a response that is one call of one of `tools`, or up to `max_calls` of them, and nothing else.

    Raises:
        GrammarImpossible: naming the tool and the place in its schema.
    """
    if not tools:
        raise GrammarImpossible("a grammar of calls needs at least one tool")
    frame = parser.frame
    if frame is None:
        raise GrammarImpossible(f"calls of the form {parser.form} cannot be forced by a grammar")
    grammar = _Grammar()
    calls = []
    for number, tool in enumerate(tools):
        arguments = _Schema(tool, f"tool{number}", grammar).rule()
        head = _literal(frame.before_name + json.dumps(tool.name, ensure_ascii=False) + frame.after_name)
        calls.append(f"{head} {arguments} {_literal(frame.after_arguments)}")
    grammar.add("call", " | ".join(calls))
    more = f" ({_literal(frame.between)} call){{0,{max_calls - 1}}}" if max_calls > 1 else ""
    grammar.add("root", f"{_literal(frame.start)} call{more} {_literal(frame.end)}".strip())
    return grammar.text()


class _Grammar:
    """Rules by name."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def add(self, name: str, body: str) -> str:
        """Define a rule; gives its name."""
        self._rules[name] = f"{name} ::= {body}"
        return name

    def primitive(self, name: str) -> str:
        """The name of a rule that is the same in every grammar, with those that it needs."""
        if name not in self._rules:
            self._rules[name] = _PRIMITIVES[name]
            for need in _NEEDS.get(name, ()):
                self.primitive(need)
        return name

    def text(self) -> str:
        """The grammar, `root` first."""
        return "\n".join([self._rules["root"], *(r for n, r in self._rules.items() if n != "root")]) + "\n"


class _Schema:
    """Turns the schema of one tool into rules."""

    def __init__(self, tool: ToolDefinition, prefix: str, grammar: _Grammar) -> None:
        self._tool = tool
        self._prefix = prefix
        self._grammar = grammar
        self._references: dict[str, str] = {}

    def rule(self) -> str:
        """The rule of the arguments."""
        schema = {"type": "object", **self._tool.parameters}
        return self._grammar.add(self._prefix, self._expression(schema, "parameters"))

    def _expression(self, schema: Any, place: str) -> str:
        if schema is True or schema == {}:
            return self._grammar.primitive("value")
        if not isinstance(schema, Mapping):
            raise self._impossible(place, "allows nothing")
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), place)
        if "const" in schema:
            return _literal(_json(schema["const"]))
        if "enum" in schema:
            return _choice(_literal(_json(value)) for value in schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return _choice(self._expression(each, f"{place}.{key}") for each in schema[key])
        if "allOf" in schema:
            if len(schema["allOf"]) != 1:
                raise self._impossible(place, "combines several schemas with allOf")
            return self._expression(schema["allOf"][0], f"{place}.allOf")
        kind = schema.get("type")
        if isinstance(kind, list):
            return _choice(self._typed(each, schema, place) for each in kind)
        return self._typed(kind or _implied(schema), schema, place)

    def _typed(self, kind: Any, schema: Mapping[str, Any], place: str) -> str:
        if kind == "object":
            return self._object(schema, place)
        if kind == "array":
            return self._array(schema, place)
        if kind == "string" and (plain := _CLASS.fullmatch(str(schema.get("pattern", "")))):
            return f'"\\"" {plain[1]}{plain[2]} "\\""'
        if kind == "string" and ("minLength" in schema or "maxLength" in schema):
            char = self._grammar.primitive("char")
            return f'"\\"" {char}{{{schema.get("minLength", 0)},{schema.get("maxLength", "")}}} "\\""'
        if kind == "integer" and schema.get("minimum", schema.get("exclusiveMinimum", -1)) >= 0:
            return self._grammar.primitive("natural")
        if kind in ("string", "integer", "number", "boolean", "null"):
            return self._grammar.primitive(kind)
        if kind is None:
            return self._grammar.primitive("value")
        raise self._impossible(place, f"has the unknown type {kind!r}")

    def _object(self, schema: Mapping[str, Any], place: str) -> str:
        properties = {**schema.get("properties", {})}
        for name in schema.get("required", ()):
            properties.setdefault(name, {})
        required = [name for name in properties if name in schema.get("required", ())]
        optional = [name for name in properties if name not in required]
        members = {
            name: f"{_literal(_json(name) + ': ')} {self._expression(inner, f'{place}.{name}')}"
            for name, inner in properties.items()
        }
        extra = schema.get("additionalProperties", True)
        if not properties and isinstance(extra, Mapping) and extra:
            key, value = (
                self._grammar.primitive("string"),
                self._expression(extra, f"{place}.additionalProperties"),
            )
            return f'"{{" ({key} ": " {value} (", " {key} ": " {value})*)? "}}"'
        if not properties:
            return '"{}"' if extra is False or place == "parameters" else self._grammar.primitive("object")
        tail = [f'(", " {members[name]})?' for name in optional]
        if required:
            inner = ' ", " '.join(members[name] for name in required)
            return " ".join(['"{"', inner, *tail, '"}"'])
        # any of the optional members may be the first
        starts = [" ".join([members[name], *tail[number + 1 :]]) for number, name in enumerate(optional)]
        return f'"{{" {_choice(starts)}? "}}"'

    def _array(self, schema: Mapping[str, Any], place: str) -> str:
        if "prefixItems" in schema:
            items = [self._expression(each, f"{place}.prefixItems") for each in schema["prefixItems"]]
            return " ".join(['"["', ' ", " '.join(items), '"]"'])
        item = self._expression(schema.get("items", {}), f"{place}.items")
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        if most == 0:
            return '"[]"'
        more = f'(", " {item}){{{max(0, least - 1)},{"" if most is None else int(most) - 1}}}'
        return f'"[" {item} {more} "]"' if least else f'"[" ({item} {more})? "]"'

    def _reference(self, reference: str, place: str) -> str:
        if reference not in self._references:
            last = re.sub("[^A-Za-z0-9]", "-", reference.rsplit("/", 1)[-1])
            name = f"{self._prefix}-{last}-{len(self._references)}"
            self._references[reference] = name  # before its body: a schema may refer to itself
            self._grammar.add(name, self._expression(self._resolved(reference, place), reference))
        return self._references[reference]

    def _resolved(self, reference: str, place: str) -> Any:
        target: Any = self._tool.parameters
        for part in reference.removeprefix("#").split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or part not in target:
                raise self._impossible(place, f"refers to {reference!r}, which is not there")
            target = target[part]
        if not reference.startswith("#"):
            raise self._impossible(place, f"refers to {reference!r}, outside of the schema")
        return target

    def _impossible(self, place: str, problem: str) -> GrammarImpossible:
        return GrammarImpossible(f"no grammar for tool {self._tool.name!r}: {place} {problem}")


def _implied(schema: Mapping[str, Any]) -> str | None:
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else None


def _choice(options: Any) -> str:
    return f"({' | '.join(dict.fromkeys(options))})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(text: str) -> str:
    """`text` as a terminal of the grammar ("" for none)."""
    if not text:
        return ""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
