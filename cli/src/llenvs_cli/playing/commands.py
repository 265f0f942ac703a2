"""What a person types: an answer, a tool call, or a command such as ``/back``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownName
from llenvs.core.tools import ToolDefinition

COMMANDS: dict[str, str] = {
    "call": "/call TOOL {JSON} or /call TOOL key=value ...: call a tool",
    "tools": "/tools: the tools with all their parameters",
    "show": "/show: the observation once more",
    "back": "/back: go back one step",
    "help": "/help: this list",
    "quit": "/quit: leave (so does Ctrl-D)",
}
"""Commands of a session and what they do."""

LITERAL_HINT = "an answer that begins with / is written with //"


class UnknownCommand(UnknownName):
    """No command of this name exists in a session."""

    kind = "command"


@dataclass(frozen=True)
class Answer:
    """Text for the environment."""

    text: str


@dataclass(frozen=True)
class Command:
    """A command, and what stood after its name."""

    name: str
    rest: str = ""


def parse_entry(text: str) -> Answer | Command:
    """An answer, or a command when `text` begins with ``/``; ``//x`` is the answer ``/x``.

    Raises:
        UnknownCommand: with the nearest command.
    """
    if not text.startswith("/"):
        return Answer(text)
    if text.startswith("//"):
        return Answer(text[1:])
    name, _, rest = text[1:].strip().partition(" ")
    if name not in COMMANDS:
        raise UnknownCommand(f"/{name}", [f"/{each}" for each in COMMANDS], LITERAL_HINT)
    return Command(name, rest.strip())


def parse_tool_call(text: str, tools: tuple[ToolDefinition, ...]) -> tuple[str, dict[str, Any]]:
    """Name and arguments from ``NAME {JSON object}`` or ``NAME key=value ...`` (values read as YAML).

    A value of a parameter that the tool declares as a string stays text. A tool that does not exist is passed on:
    what happens then is the environment's to say.

    Raises:
        InvalidOption: there is no name, or the arguments cannot be read.
    """
    name, _, rest = text.partition(" ")
    if not name:
        raise InvalidOption("/call", text, "needs the name of a tool", valid=", ".join(t.name for t in tools))
    rest = rest.strip()
    if rest.startswith("{"):
        return name, _from_json(name, rest)
    schema = next((tool.parameters for tool in tools if tool.name == name), {})
    return name, _from_pairs(name, rest, schema)


def _from_json(name: str, text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise InvalidOption(f"/call {name}", text, f"is no JSON ({error})") from None
    if not isinstance(arguments, dict):
        raise InvalidOption(f"/call {name}", text, "is no JSON object")
    return arguments


def _from_pairs(name: str, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    import yaml

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidOption(f"/call {name}", text, str(error).lower()) from None
    properties = schema.get("properties") or {}
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InvalidOption(f"/call {name}", word, "is no argument", valid='{"key": value} or key=value')
        if properties.get(key, {}).get("type") == "string":
            arguments[key] = value
            continue
        try:
            arguments[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            arguments[key] = value
    return arguments
