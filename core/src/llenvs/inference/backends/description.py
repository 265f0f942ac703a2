"""What a backend is and which options it takes, read from its class."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llenvs.core.adapter import OptionInfo

if TYPE_CHECKING:
    from llenvs.inference.backend import Backend


@dataclass(frozen=True, slots=True)
class BackendDescription:
    """Everything that `llenvs info` shows of a backend.

    Attributes:
        name: as ``backend:`` in a configuration takes it.
        description: what it is, in paragraphs.
        options: what stands beside ``backend:``.
    """

    name: str
    description: str
    options: tuple[OptionInfo, ...]


def describe(name: str, cls: type[Backend], shared: Sequence[str]) -> BackendDescription:
    """The description of a backend by the signature of its class and the docstrings of it and its bases.

    Args:
        shared: options that every backend takes (see `Backend.use`), whether or not its signature has them.
    """
    from docstring_parser import parse

    told: dict[str, str] = {}
    for kind in (*cls.__mro__, cls.use):
        for parameter in parse(inspect.getdoc(kind) or "").params:
            told.setdefault(parameter.arg_name, textwrap.dedent(parameter.description or "").strip())
    options = [
        OptionInfo(p.name, _type(p), "required" if p.default is p.empty else repr(p.default), told.get(p.name, ""))
        for p in inspect.signature(cls).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    named = {option.name for option in options}
    hints = inspect.signature(cls.use).parameters
    options += [
        OptionInfo(each, _type(hints[each]), "None", told.get(each, "")) for each in shared if each not in named
    ]
    doc = parse(inspect.getdoc(cls) or "")
    parts = (doc.short_description, doc.long_description)
    return BackendDescription(name, "\n\n".join(part.strip() for part in parts if part), tuple(options))


def _type(parameter: inspect.Parameter) -> str:
    """The annotation as it is written: all modules of backends postpone theirs."""
    hint = parameter.annotation
    if hint is parameter.empty:
        return "Any"
    return hint if isinstance(hint, str) else inspect.formatannotation(hint)
