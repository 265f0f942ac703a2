"""Segmenters by name, as configuration files write them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, UnknownName
from llenvs.core.segmentation.composite import CompositeSegmenter
from llenvs.core.segmentation.custom import CustomSegmenter
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.segmentation.lines import LineSegmenter, ParagraphSegmenter
from llenvs.core.segmentation.numbered import NumberedStepSegmenter
from llenvs.core.segmentation.segmenter import Segmenter
from llenvs.core.segmentation.sentence import SentenceSegmenter

_OF_THE_ENVIRONMENT = ("max_segments", "reward_functions")


class UnknownSegmenter(UnknownName):
    """No segmenter of this name exists."""

    kind = "segmenter"


def _by_pattern(pattern: str, cut: Literal["after", "before"] = "after") -> CustomSegmenter:
    if not isinstance(pattern, str):
        raise InvalidOption("pattern", pattern, "must be a regular expression")
    try:
        return CustomSegmenter(pattern, cut=cut)
    except InvalidOption as error:
        field = "pattern" if error.field == "by" else error.field
        raise InvalidOption(field, error.value, error.problem, valid=error.valid) from None


_KINDS: dict[str, Callable[..., Segmenter]] = {
    "sentence": SentenceSegmenter,
    "line": LineSegmenter,
    "paragraph": ParagraphSegmenter,
    "numbered_step": NumberedStepSegmenter,
    "regex": _by_pattern,
}


def segmenter_names() -> list[str]:
    """The names that a configuration may use. Token chunks and functions need an object of Python, so no name."""
    return list(_KINDS)


def make_segmenter(spec: Any, *, field: str = "segmenter") -> Segmenter:
    """The segmenter that `spec` describes.

    Args:
        spec: a name ("sentence"); a mapping with the name under ``by`` and options beside it (``{"by": "regex",
            "pattern": ";", "cut": "before"}``); a list of these, or a mapping with a list under ``by`` and
            ``boundary`` beside it, for a `CompositeSegmenter`; or a segmenter (returned as it is).
        field: what errors call the place.

    Raises:
        UnknownSegmenter: with the nearest names.
        InvalidOption: naming the field and what is valid.
    """
    return _made(spec, field, ())


def long_form(spec: Any) -> Any:
    """`spec` with a name or a list alone written out under ``by``; anything else as it is."""
    return {"by": spec} if isinstance(spec, str | list | tuple) else spec


def segmented_environment(
    environment: Environment[Any], spec: Any, *, field: str = "segmentation"
) -> SegmentedEnvironment:
    """`environment`, segmented as `spec` says.

    Args:
        environment: any that is not segmented.
        spec: what `make_segmenter` takes; a mapping may also hold ``max_segments`` and ``reward_functions`` (see
            `SegmentedEnvironment`), the latter as `llenvs.core.rewards.make_reward_functions` takes them.
        field: what errors call the place.

    Raises:
        UnknownSegmenter, UnknownRewardFunction, UnknownOption: with the nearest names.
        InvalidOption: naming the field and what is valid.
    """
    own = {}
    if isinstance(spec, Mapping):
        own = {name: spec[name] for name in _OF_THE_ENVIRONMENT if name in spec}
        spec = {name: value for name, value in spec.items() if name not in own}
    segmenter = _made(spec, field, _OF_THE_ENVIRONMENT)
    try:
        return SegmentedEnvironment(environment, segmenter, **own)
    except InvalidOption as error:
        raise _within(field, error) from None


def _made(spec: Any, field: str, beside: Sequence[str]) -> Segmenter:
    """See `make_segmenter`; `beside`: keys that may stand beside the options, for the error."""
    if isinstance(spec, Segmenter):
        return spec
    valid = ", ".join(_KINDS)
    spec = long_form(spec)
    if not isinstance(spec, Mapping):
        raise InvalidOption(field, spec, "must be the name of a segmenter, or a mapping with 'by'", valid=valid)
    options = dict(spec)
    if "by" not in options:
        raise InvalidOption(field, spec, "needs the name of a segmenter under 'by'", valid=valid)
    by = options.pop("by")
    if isinstance(by, list | tuple):
        if not by:
            raise InvalidOption(f"{field}.by", by, "must hold at least one", valid=valid)
        several = [_made(each, f"{field}.by.{number}", ()) for number, each in enumerate(by)]
        _check_options(CompositeSegmenter, "a list", options, field, beside)
        return _built(lambda: CompositeSegmenter(*several, **options), field)
    if not isinstance(by, str):
        raise InvalidOption(f"{field}.by", by, "must be the name of a segmenter, or a list of them", valid=valid)
    if by not in _KINDS:
        raise UnknownSegmenter(by, segmenter_names())
    kind = _KINDS[by]
    _check_options(kind, by, options, field, beside)
    return _built(lambda: kind(**options), field)


def _check_options(
    kind: Callable[..., Segmenter], name: str, options: Mapping[Any, Any], field: str, beside: Sequence[str]
) -> None:
    parameters = {
        each.name: each.default is inspect.Parameter.empty
        for each in inspect.signature(kind).parameters.values()
        if each.kind is not inspect.Parameter.VAR_POSITIONAL
    }
    valid = [*parameters, "by", *beside]
    for option, value in options.items():
        if option not in parameters:
            raise InvalidOption.unknown(field, option, value, name, valid)
    for parameter, needed in parameters.items():
        if needed and parameter not in options:
            raise InvalidOption(f"{field}.{parameter}", None, f"is needed for {name}")


def _built(make: Callable[[], Segmenter], field: str) -> Segmenter:
    try:
        return make()
    except InvalidOption as error:
        raise _within(field, error) from None


def _within(field: str, error: InvalidOption) -> InvalidOption:
    return InvalidOption(f"{field}.{error.field}", error.value, error.problem, valid=error.valid)
