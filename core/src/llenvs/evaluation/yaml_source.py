"""YAML with line numbers, so that an error can say where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llenvs.core.errors import LLEnvsError, UnknownName

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

Key = tuple[str | int, ...]
"""Where a value stands: the keys and indices that lead to it."""

_OVERRIDDEN = "command line"  # the source of values that replace those of a file


class ConfigError(LLEnvsError):
    """A configuration that cannot be used.

    Attributes:
        source: the file's name ("" when it was no file).
        line: where, counted from 1; None when it is not known.
        field: dotted path, such as ``environments[0].size``; "" for the whole.
        problem: what is wrong with it, valid values and nearest names included.
    """

    def __init__(self, problem: str, *, source: str = "", line: int | None = None, field: str = "") -> None:
        self.source, self.line, self.field, self.problem = source, line, field, problem
        where = [source] if source else []
        where += [f"line {line}"] if line is not None else []
        parts = [", ".join(where), field, problem]
        super().__init__(": ".join(part for part in parts if part))


class UnknownField(UnknownName):
    """A key that the configuration does not have."""

    kind = "field"


def dotted(key: Key) -> str:
    """``environments[0].size`` for ``("environments", 0, "size")``."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@dataclass(frozen=True)
class ConfigSource:
    """A configuration as plain data, and the line of each value.

    `lines` maps a key's path to its line; values that did not come from a file have none.
    """

    data: dict[str, Any]
    name: str = ""
    lines: Mapping[Key, int] = field(default_factory=dict)
    overridden: frozenset[Key] = frozenset()

    def error(self, key: Key, problem: str) -> ConfigError:
        """An error about the value at `key`, or the nearest one around it whose line is known."""
        for length in range(len(key), -1, -1):
            if key[:length] in self.overridden:
                return ConfigError(problem, source=_OVERRIDDEN, field=dotted(key))
        for length in range(len(key), -1, -1):
            line = self.lines.get(key[:length])
            if line is not None:
                return ConfigError(problem, source=self.name, line=line, field=dotted(key))
        return ConfigError(problem, source=self.name, field=dotted(key))

    def with_overrides(self, overrides: Mapping[str, Any]) -> ConfigSource:
        """The same with some values replaced; keys are dotted (``model.model``, ``environments.0.size``)."""
        if not overrides:
            return self
        data: Any = self.data
        keys: set[Key] = set()
        for path, value in overrides.items():
            key = tuple(path.split("."))
            try:
                data = _replaced(data, key, value)
            except IndexError as error:
                raise ConfigError(str(error), source=_OVERRIDDEN, field=path) from None
            keys.add(tuple(int(part) if part.isdecimal() else part for part in key))
        return ConfigSource(data, self.name, self.lines, self.overridden | keys)


def _replaced(data: Any, key: Sequence[str], value: Any) -> Any:
    """A copy of `data` with `value` at `key`; mappings on the way are made where there are none."""
    if not key:
        return value
    first, rest = key[0], key[1:]
    if isinstance(data, list | tuple):
        if not first.isdecimal() or int(first) >= len(data):
            raise IndexError(f"{first!r} is no item of a list of {len(data)}; items are counted from 0")
        position = int(first)
        return [*data[:position], _replaced(data[position], rest, value), *data[position + 1 :]]
    inner = dict(data) if isinstance(data, Mapping) else {}
    inner[first] = _replaced(inner.get(first), rest, value)
    return inner


def read_yaml(path: str | Path) -> ConfigSource:
    """The mapping in the YAML file `path`.

    Raises:
        ConfigError: no such file, no YAML, no mapping, or a key that occurs twice; with the line.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such file", source=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str = "") -> ConfigSource:
    """The mapping that `text` holds; see `read_yaml`."""
    import yaml

    lines: dict[Key, int] = {}
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError("is empty", source=name)
        data = _construct(loader, node, (), lines, name, frozenset())
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"not valid YAML: character #x{error.character:04x}", source=name, line=line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not valid"
        raise ConfigError(
            f"not valid YAML: {problem}", source=name, line=None if mark is None else mark.line + 1
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"not valid YAML: {error}", source=name) from None
    if not isinstance(data, dict):
        raise ConfigError(f"must be a mapping of fields, got {_kind(data)}", source=name, line=1)
    return ConfigSource(data, name, lines)


def _construct(loader: Any, node: Node, key: Key, lines: dict[Key, int], name: str, around: frozenset[int]) -> Any:
    from yaml.nodes import MappingNode, SequenceNode

    lines.setdefault(key, node.start_mark.line + 1)
    if id(node) in around:
        raise ConfigError(
            "an alias refers to what it stands in", source=name, line=node.start_mark.line + 1, field=dotted(key)
        )
    inside = around | {id(node)}
    if isinstance(node, SequenceNode):
        return [_construct(loader, n, (*key, i), lines, name, inside) for i, n in enumerate(node.value)]
    if isinstance(node, MappingNode):
        return _construct_mapping(loader, node, key, lines, name, inside)
    return loader.construct_object(node)


def _construct_mapping(
    loader: Any, node: MappingNode, key: Key, lines: dict[Key, int], name: str, inside: frozenset[int]
) -> dict[Any, Any]:
    own: dict[Any, int] = {}
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        field_name = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(field_name, str | int):
            raise ConfigError(f"a key must be text, got {_kind(field_name)}", source=name, line=line)
        if field_name in own:
            raise ConfigError(
                f"occurs twice (first in line {own[field_name]})",
                source=name,
                line=line,
                field=dotted((*key, field_name)),
            )
        own[field_name] = line
    loader.flatten_mapping(node)
    data: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        field_name = loader.construct_object(key_node, deep=True)
        path = (*key, field_name)
        lines[path] = key_node.start_mark.line + 1
        data[field_name] = _construct(loader, value_node, path, lines, name, inside)
    return data


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
