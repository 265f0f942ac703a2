"""Building extractors from what configuration files say, and the errors for what they should not say."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs.core.errors import InvalidOption, LLEnvsError, UnknownExtractor
from llenvs.core.extraction import (
    BoxedExtractor,
    CompositeExtractor,
    LastLineExtractor,
    NativeExtractor,
    TagBasedExtractor,
    UnknownCleaner,
    describe_extractors,
    extractor_names,
    make_extractor,
)


def test_names() -> None:
    assert extractor_names() == [
        "boxed",
        "code_block",
        "composite",
        "gsm8k",
        "last_line",
        "multiple_choice",
        "native",
        "numeric",
        "pattern",
        "raw",
        "regex",
        "tag_based",
        "tail",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, NativeExtractor()),
        ("boxed", BoxedExtractor()),
        ({"name": "tag_based", "tag": "x"}, TagBasedExtractor("x")),
        (
            {"type": "tag_based", "before": [], "after": ["quotes"]},
            TagBasedExtractor(before=(), after=("quotes",)),
        ),
        (
            ["boxed", {"name": "tag_based", "tag": "x"}, LastLineExtractor()],
            CompositeExtractor((BoxedExtractor(), TagBasedExtractor("x"), LastLineExtractor())),
        ),
        ({"name": "composite", "extractors": ["boxed"]}, CompositeExtractor((BoxedExtractor(),))),
        (BoxedExtractor(after=()), BoxedExtractor(after=())),
    ],
)
def test_specs(spec: Any, expected: object) -> None:
    made = make_extractor(spec)
    assert made == expected
    assert hash(made) == hash(expected)
    assert make_extractor(made.to_spec()) == made


def test_spec_holds_only_what_differs() -> None:
    chain = make_extractor(
        [{"name": "tag_based", "tag": "x", "ignore_case": True}, {"name": "raw", "after": ["quotes"]}]
    )
    assert chain.to_spec() == {
        "name": "composite",
        "extractors": [{"name": "tag_based", "tag": "x"}, {"name": "raw", "after": ["quotes"]}],
    }


@pytest.mark.parametrize(
    ("spec", "error", "parts"),
    [
        ("tag_base", UnknownExtractor, ["'tag_base'", "did you mean 'tag_based'", "answer_extractor"]),
        ("zzz", UnknownExtractor, ["valid: boxed, code_block"]),
        (["boxed", "nummeric"], UnknownExtractor, ["'numeric'", "answer_extractor.extractors[1]"]),
        ({"name": "raw", "after": ["quote"]}, UnknownCleaner, ["did you mean 'quotes'"]),
        ({"name": "tag_based", "tagg": "x"}, InvalidOption, ["answer_extractor.tagg", "did you mean 'tag'"]),
        ({"name": "native", "function": print}, InvalidOption, ["answer_extractor.function"]),
        ({"name": "tag_based", "tag": 3}, InvalidOption, ["answer_extractor.tag:", "valid: text"]),
        ({"name": "tag_based", "tag": "<answer>"}, InvalidOption, ["answer_extractor.tag:"]),
        ({"name": "tag_based", "tag": "think"}, InvalidOption, ["answer_extractor.tag:", "'thinking'"]),
        ({"name": "tag_based", "ignore_case": "no"}, InvalidOption, ["ignore_case", "true or false"]),
        ({"name": "tail", "count": True}, InvalidOption, ["answer_extractor.count", "whole number"]),
        (
            ["raw", {"name": "tail", "count": 0}],
            InvalidOption,
            ["answer_extractor.extractors[1].count", "1 or more"],
        ),
        ({"name": "tail", "unit": "lines"}, InvalidOption, ["'characters' or 'words'"]),
        ({"name": "raw", "after": "quotes"}, InvalidOption, ["answer_extractor.after", "list of text"]),
        ({"name": "regex"}, InvalidOption, ["answer_extractor.pattern", "needs this option"]),
        ({"name": "regex", "pattern": "("}, InvalidOption, ["answer_extractor.pattern", "no regular expression"]),
        (
            {"name": "regex", "pattern": "(a)", "group": 2},
            InvalidOption,
            ["answer_extractor.group", "valid: 0, 1"],
        ),
        ({"name": "multiple_choice", "choices": "AaB"}, InvalidOption, ["answer_extractor.choices"]),
        ({"name": "multiple_choice", "choices": ["AB"]}, InvalidOption, ["answer_extractor.choices"]),
        ({"name": "multiple_choice", "choices": ""}, InvalidOption, ["answer_extractor.choices"]),
        ({"name": "pattern", "phrases": [" "]}, InvalidOption, ["answer_extractor.phrases"]),
        ({"name": "composite", "extractors": "raw"}, InvalidOption, ["answer_extractor.extractors", "list"]),
        ({"name": "raw", "type": "raw"}, InvalidOption, ["'name'"]),
        ({"tag": "x"}, InvalidOption, ["answer_extractor:", "'name'"]),
        ([], InvalidOption, ["answer_extractor.extractors"]),
        (3, InvalidOption, ["answer_extractor:", "is no extractor"]),
    ],
)
def test_errors_name_field_and_valid_values(spec: Any, error: type[LLEnvsError], parts: list[str]) -> None:
    with pytest.raises(error) as raised:
        make_extractor(spec)
    for part in parts:
        assert part in str(raised.value)


def test_errors_name_the_field_that_the_caller_uses() -> None:
    with pytest.raises(InvalidOption) as raised:
        make_extractor({"name": "tail", "count": 0}, field="environments[2].answer_extractor")
    assert raised.value.field == "environments[2].answer_extractor.count"


def test_options_are_checked_without_yaml_too() -> None:
    with pytest.raises(InvalidOption, match=r"^tag: "):
        TagBasedExtractor(tag=3)  # type: ignore[arg-type]


def test_descriptions_hold_the_options_with_defaults() -> None:
    by_name = {each.name: each for each in describe_extractors()}
    assert list(by_name) == extractor_names()
    assert all(each.doc and "\n" not in each.doc for each in by_name.values())
    tag = by_name["tag_based"].options
    assert [(o.name, o.type, o.default) for o in tag[:3]] == [
        ("tag", "text", "answer"),
        ("ignore_case", "true or false", True),
        ("allow_unclosed", "true or false", False),
    ]
    assert [o.name for o in tag[3:]] == ["before", "after"]
    assert by_name["regex"].options[0].required
    assert [o.name for o in by_name["native"].options] == ["before", "after"]
