"""Extractors by name, as configuration files write them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from llenvs.core.errors import InvalidOption, UnknownExtractor
from llenvs.core.extraction.boxed import BoxedExtractor
from llenvs.core.extraction.cleaners import UnknownCleaner
from llenvs.core.extraction.code_block import CodeBlockExtractor
from llenvs.core.extraction.composite import CompositeExtractor
from llenvs.core.extraction.extractor import Extractor, option_fields, option_types
from llenvs.core.extraction.gsm8k import GSM8KExtractor
from llenvs.core.extraction.multiple_choice import MultipleChoiceExtractor
from llenvs.core.extraction.native import NativeExtractor
from llenvs.core.extraction.numeric import NumericExtractor
from llenvs.core.extraction.options import type_text
from llenvs.core.extraction.pattern import PatternExtractor
from llenvs.core.extraction.regex import RegexExtractor
from llenvs.core.extraction.tag_based import TagBasedExtractor
from llenvs.core.extraction.whole_text import LastLineExtractor, RawExtractor, TailExtractor

_KINDS: dict[str, type[Extractor]] = {
    kind.name: kind
    for kind in (
        TagBasedExtractor,
        RegexExtractor,
        GSM8KExtractor,
        MultipleChoiceExtractor,
        BoxedExtractor,
        NumericExtractor,
        LastLineExtractor,
        CodeBlockExtractor,
        PatternExtractor,
        TailExtractor,
        RawExtractor,
        NativeExtractor,
        CompositeExtractor,
    )
}

ExtractorSpec = Extractor | str | Mapping[str, Any] | list[Any] | tuple[Any, ...] | None
"""What `make_extractor` takes."""


class ExtractorOption(NamedTuple):
    """One option: its name, its type in words, its default (None where required), and what it means."""

    name: str
    type: str
    default: object
    required: bool
    doc: str


class ExtractorInfo(NamedTuple):
    """One kind of extractor: its name in YAML, one line about it, and its options."""

    name: str
    doc: str
    options: tuple[ExtractorOption, ...]


def extractor_names() -> list[str]:
    """The names of all kinds of extractors, sorted."""
    return sorted(_KINDS)


def describe_extractors() -> list[ExtractorInfo]:
    """What there is, for the documentation and the command line, sorted by name."""
    return [_describe(_KINDS[name]) for name in extractor_names()]


def make_extractor(spec: ExtractorSpec, *, field: str = "answer_extractor") -> Extractor:
    """The extractor that `spec` describes.

    `spec` is a name (``"boxed"``), a mapping with the name under ``name`` or ``type`` and options beside it
    (``{"name": "tag_based", "tag": "solution"}``), a list of these (tried in order), an extractor (returned
    as it is), or None (``native``: what the benchmark itself does). `field` is what errors call the place.

    Raises `UnknownExtractor` or `UnknownCleaner` with the nearest names, and `InvalidOption` naming the field.
    """
    if isinstance(spec, Extractor):
        return spec
    if spec is None:
        return NativeExtractor()
    if isinstance(spec, str):
        return _build(spec, {}, field)
    if isinstance(spec, list | tuple):
        return _build("composite", {"extractors": spec}, field)
    if isinstance(spec, Mapping):
        options = dict(spec)
        names = [options.pop(key) for key in ("name", "type") if key in options]
        if len(names) != 1 or not isinstance(names[0], str):
            raise InvalidOption(
                field, dict(spec), "needs the extractor's name under 'name'", valid=", ".join(extractor_names())
            )
        return _build(names[0], options, field)
    raise InvalidOption(field, spec, "is no extractor", valid="a name, a mapping with a name, or a list of these")


def _build(name: str, options: dict[Any, Any], field: str) -> Extractor:
    kind = _KINDS.get(name)
    if kind is None:
        raise UnknownExtractor(name, extractor_names(), hint=f"in {field}")
    fields = option_fields(kind)
    valid = [each.name for each in fields]
    for option, value in options.items():
        if option not in valid:
            raise InvalidOption.unknown(field, option, value, name, valid)
    for each in fields:
        if each.default is dataclasses.MISSING and each.name not in options:
            raise InvalidOption(f"{field}.{each.name}", None, f"{name} needs this option: {each.metadata['doc']}")
    if kind is CompositeExtractor:
        options = {**options, "extractors": _build_chain(options["extractors"], f"{field}.extractors")}
    try:
        return kind(**options)
    except InvalidOption as error:
        raise InvalidOption(f"{field}.{error.field}", error.value, error.problem, valid=error.valid) from None
    except UnknownCleaner as error:
        raise UnknownCleaner(error.name, error.valid, hint=f"in {field}") from None


def _build_chain(specs: object, field: str) -> tuple[Extractor, ...]:
    if not isinstance(specs, list | tuple):
        raise InvalidOption(field, specs, "must be a list of extractors")
    return tuple(make_extractor(spec, field=f"{field}[{index}]") for index, spec in enumerate(specs))


def _describe(kind: type[Extractor]) -> ExtractorInfo:
    types = option_types(kind)
    options = tuple(
        ExtractorOption(
            each.name,
            type_text(types[each.name]),
            None if each.default is dataclasses.MISSING else each.default,
            each.default is dataclasses.MISSING,
            each.metadata["doc"],
        )
        for each in option_fields(kind)
    )
    doc = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")
    return ExtractorInfo(kind.name, doc, options)
