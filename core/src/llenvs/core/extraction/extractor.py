"""The extractor contract: text in, the answer or None out."""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, get_type_hints

from llenvs.core.extraction.cleaners import check_cleaner_names, clean, clean_until_stable
from llenvs.core.extraction.options import conform

# A model's thoughts and control tokens are not its answer.
DEFAULT_BEFORE = ("thinking", "reasoning", "special_tokens")


@dataclass(frozen=True)
class Extractor(ABC):
    """Finds the answer in a model's text: cleaners `before`, the search, cleaners `after`.

    A value: two extractors with equal options are equal. Options are checked when it is made (`InvalidOption`,
    `UnknownCleaner`). Extraction itself raises nothing and takes time linear in the text (for `regex`, as far
    as the given pattern does). Where several places match, the last one wins.
    """

    name: ClassVar[str]
    # Whether an empty text counts as an answer (it does where the text is passed on as it is).
    empty_is_an_answer: ClassVar[bool] = False

    before: tuple[str, ...] = field(
        default=DEFAULT_BEFORE, kw_only=True, metadata={"doc": "cleaners that run on the whole text first"}
    )
    after: tuple[str, ...] = field(
        default=("whitespace",), kw_only=True, metadata={"doc": "cleaners that run on what was found"}
    )

    def __post_init__(self) -> None:
        hints = option_types(type(self))
        for each in dataclasses.fields(self):
            object.__setattr__(self, each.name, conform(each.name, getattr(self, each.name), hints[each.name]))
        check_cleaner_names((*self.before, *self.after))

    def extract(self, text: str) -> str | None:
        """The answer in `text`, or None where there is none."""
        found = self._find(clean(text, self.before))
        if found is None:
            return None
        found = clean_until_stable(found, self.after)
        return found if found or self.empty_is_an_answer else None

    def __call__(self, text: str) -> str | None:
        """The same as `extract`."""
        return self.extract(text)

    @abstractmethod
    def _find(self, text: str) -> str | None:
        """The answer in the cleaned `text`, not cleaned itself; None where there is none."""

    def bind(self, function: Callable[[str], str | None]) -> Extractor:
        """This extractor with the upstream's own extraction `function` wherever `native` stands.

        An environment calls it once with what its benchmark uses; every other extractor stays as it is.
        """
        return self

    def replace(self, **options: Any) -> Self:
        """The same extractor with some options changed."""
        return dataclasses.replace(self, **options)

    def to_spec(self) -> dict[str, Any]:
        """Plain data that `make_extractor` turns into an equal extractor: name and options off their defaults.

        The function of a bound `native` is left out: it belongs to the environment.
        """
        spec: dict[str, Any] = {"name": self.name}
        for each in option_fields(type(self)):
            value = getattr(self, each.name)
            if value != each.default:
                spec[each.name] = _plain(value)
        return spec


def option_fields(kind: type[Extractor]) -> list[dataclasses.Field[Any]]:
    """The fields that are options in YAML: the kind's own first, then `before` and `after`."""
    fields = [each for each in dataclasses.fields(kind) if not each.metadata.get("internal")]
    return sorted(fields, key=lambda each: bool(each.kw_only))


@functools.cache
def option_types(kind: type[Extractor]) -> dict[str, Any]:
    """The resolved annotations of the kind's fields."""
    return get_type_hints(kind)


def _plain(value: object) -> object:
    if isinstance(value, Extractor):
        return value.to_spec()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
