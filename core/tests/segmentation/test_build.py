"""Segmenters and segmented environments by name."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs.core import CompositeSegmenter, LineSegmenter, NumberedStepSegmenter, SentenceSegmenter
from llenvs.core.errors import InvalidOption, UnknownName, UnknownOption
from llenvs.core.segmentation import make_segmenter, segmented_environment, segmenter_names


@pytest.mark.parametrize(
    ("spec", "made"),
    [
        ("sentence", "SentenceSegmenter()"),
        ({"by": "sentence", "split_lines": False, "abbreviations": ["Abb."]},
         "SentenceSegmenter(split_lines=False, abbreviations=['abb'])"),
        ("line", "LineSegmenter()"),
        ("paragraph", "ParagraphSegmenter()"),
        ({"by": "numbered_step", "labels": "Schritt"}, "NumberedStepSegmenter(('Schritt',))"),
        ({"by": "regex", "pattern": ";"}, "CustomSegmenter(';')"),
        ({"by": "regex", "pattern": "Thought:", "cut": "before"}, "CustomSegmenter('Thought:', cut='before')"),
        (["line", "sentence"], "CompositeSegmenter(LineSegmenter(), SentenceSegmenter())"),
        ({"by": ["numbered_step", {"by": "regex", "pattern": ";"}], "boundary": "first"},
         "CompositeSegmenter(NumberedStepSegmenter(), CustomSegmenter(';'), boundary='first')"),
    ],
)  # fmt: skip
def test_segmenters_by_name(spec: Any, made: str) -> None:
    assert repr(make_segmenter(spec)) == made


def test_a_segmenter_stays_as_it_is() -> None:
    own = LineSegmenter()
    assert make_segmenter(own) is own
    composite = make_segmenter([own, "sentence"])
    assert isinstance(composite, CompositeSegmenter)
    assert composite.segmenters[0] is own


def test_every_name_makes_a_segmenter() -> None:
    for name in segmenter_names():
        spec = {"by": name, "pattern": "a"} if name == "regex" else name
        assert "".join(make_segmenter(spec).split("a b\n\n1. c")) == "a b\n\n1. c"


def test_environments(addition: Any) -> None:
    spec = {"by": "numbered_step", "labels": ["Step"], "max_segments": 3, "reward_functions": "length"}
    with segmented_environment(addition(), spec) as env:
        assert isinstance(env.segmenter, NumberedStepSegmenter)
        assert env.max_segments == 3
        assert [function.name for function in env.reward_functions] == ["length"]
    assert isinstance(segmented_environment(addition(), "sentence").segmenter, SentenceSegmenter)


@pytest.mark.parametrize(
    ("spec", "error", "field", "said"),
    [
        ("lines", UnknownName, "", "unknown segmenter 'lines'; did you mean 'line'?"),
        ("token", UnknownName, "", "valid: sentence, line, paragraph, numbered_step, regex"),
        (3, InvalidOption, "s", "must be the name of a segmenter, or a mapping with 'by'"),
        ({}, InvalidOption, "s", "needs the name of a segmenter under 'by'"),
        ({"by": 3}, InvalidOption, "s.by", "or a list of them"),
        ([], InvalidOption, "s.by", "must hold at least one"),
        ({"by": "line", "labels": "a"}, InvalidOption, "s.labels",
         "line has no such option, got 'a'; valid: by, max_segments, reward_functions"),
        ({"by": ["line", {"by": "line", "max_segments": 3}]}, InvalidOption, "s.by.1.max_segments", "valid: by"),
        ({"by": "regex", "cut": "after"}, InvalidOption, "s.pattern", "is needed for regex"),
        ({"by": "regex", "pattern": 3}, InvalidOption, "s.pattern", "must be a regular expression"),
        ({"by": "regex", "pattern": "("}, InvalidOption, "s.pattern", "is no regular expression"),
        ({"by": "regex", "pattern": "a", "cut": "in"}, InvalidOption, "s.cut", '"after", "before"'),
        ({"by": "numbered_step", "labels": [""]}, InvalidOption, "s.labels", "must be words"),
        ({"by": ["line"], "boundary": "b"}, InvalidOption, "s.boundary", "valid: any, all, first"),
        ({"by": "line", "max_segments": "a"}, InvalidOption, "s.max_segments", "must be a positive integer"),
        ({"by": "line", "reward_functions": 3}, InvalidOption, "s.reward_functions", "must be a list"),
        ({"by": "line", "reward_functions": ["a"]}, UnknownName, "", "unknown reward function 'a'"),
        ({"by": "line", "reward_functions": {"type": "length", "max": 3}}, UnknownOption, "", "'max_characters'"),
        ({"by": "line", "reward_functions": {"type": "length", "max_characters": 0}}, InvalidOption,
         "s.reward_functions.max_characters", "must be a positive integer"),
    ],
)  # fmt: skip
def test_what_is_refused(addition: Any, spec: Any, error: type[Exception], field: str, said: str) -> None:
    with pytest.raises(error) as caught:
        segmented_environment(addition(), spec, field="s")
    assert said in str(caught.value)
    assert getattr(caught.value, "field", "") == field
