"""Adapters: what brings the environments of one benchmark family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic.fields import FieldInfo

from llenvs.core.environment import Environment
from llenvs.core.errors import UnknownEnvironment
from llenvs.core.options import EnvironmentOptions


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """An environment that can be created, as listed.

    `category` groups the list; `metadata` holds whatever else a reader wants to know.
    """

    name: str
    adapter: str
    description: str = ""
    category: str = ""
    is_multi_turn: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """``adapter/name``."""
        return f"{self.adapter}/{self.name}"


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option of an environment: its type and default as text, and what it does."""

    name: str
    type: str
    default: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentDescription:
    """Everything that `llenvs info` shows of an environment besides a sample prompt."""

    info: EnvironmentInfo
    options: tuple[OptionInfo, ...]


class Adapter(ABC):
    """One benchmark family. An instance is what the entry point in group ``llenvs.adapters`` names.

    Importing the module of an adapter must not import the upstream: that happens in `create`.
    """

    name: ClassVar[str]
    """As written before the slash of ``adapter/name``."""
    description: ClassVar[str] = ""
    """One line."""
    options: ClassVar[type[EnvironmentOptions]] = EnvironmentOptions
    """Options of all its environments."""

    @abstractmethod
    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """All environments, in a stable order."""

    @abstractmethod
    def create(self, name: str, options: Any) -> Environment[Any]:
        """The environment `name`; `options` is an instance of ``options_for(name)``."""

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        """Options of the environment `name`, when they differ from `options`."""
        return self.options

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of `name`.

        Raises:
            UnknownEnvironment: with the nearest names.
        """
        entries = {entry.name: entry for entry in self.list_environments()}
        if name not in entries:
            raise UnknownEnvironment(name, list(entries), f"list them with: llenvs list {self.name}")
        return entries[name]

    def describe(self, name: str) -> EnvironmentDescription:
        """The environment and its options with types, defaults and docs."""
        info = self.info(name)
        fields = self.options_for(name).model_fields
        return EnvironmentDescription(info, tuple(_option(key, f) for key, f in fields.items()))


def _option(name: str, info: FieldInfo) -> OptionInfo:
    annotation = info.annotation
    type_text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    default = "required" if info.is_required() else repr(info.get_default(call_default_factory=True))
    return OptionInfo(name, type_text.replace("typing.", ""), default, info.description or "")
