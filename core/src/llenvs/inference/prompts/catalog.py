"""Named things, looked up by name; an unknown name is answered with the nearest valid ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from llenvs.core.errors import InvalidOption, UnknownPrompt


class UnknownSystemPrompt(UnknownPrompt):
    """No system prompt of this name is registered."""

    kind = "system prompt"


class UnknownFragment(UnknownPrompt):
    """No prompt fragment of this name is registered."""

    kind = "prompt fragment"


class UnknownTemplate(UnknownPrompt):
    """No question template of this name is registered."""

    kind = "question template"


class UnknownFewShot(UnknownPrompt):
    """No set of few-shot examples of this name is registered."""

    kind = "few-shot set"


class UnknownProfile(UnknownPrompt):
    """No model profile of this name is registered."""

    kind = "model profile"


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name it is registered and found under."""


T = TypeVar("T", bound=Named)


class Catalog(Generic[T]):
    """The registered items of one kind, in the order they were added.

    Args:
        unknown: the error class raised for a name that is not here; its `kind` names this catalog.
        hint: what the error advises to do next.
    """

    def __init__(self, unknown: type[UnknownPrompt], hint: str = "") -> None:
        self.kind = unknown.kind
        self._unknown = unknown
        self._hint = hint
        self._items: dict[str, T] = {}

    def add(self, item: T, *, replace: bool = False) -> T:
        """Register `item` under its name and return it.

        Raises:
            InvalidOption: the name is taken and `replace` is not set.
        """
        if item.name in self._items and not replace:
            raise InvalidOption(
                f"{self.kind} name", item.name, "already registered", valid="another name, or replace=True"
            )
        self._items[item.name] = item
        return item

    def get(self, name: str) -> T:
        """The item called `name`.

        Raises:
            UnknownPrompt: there is none; the message holds the nearest names.
        """
        try:
            return self._items[name]
        except KeyError:
            raise self._unknown(name, self.names(), self._hint) from None

    def names(self) -> tuple[str, ...]:
        """All names, in the order they were added."""
        return tuple(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)
