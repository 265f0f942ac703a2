"""What holds for any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llenvs.core.extraction import (
    BoxedExtractor,
    Extractor,
    GSM8KExtractor,
    NumericExtractor,
    TagBasedExtractor,
    cleaner_names,
    extractor_names,
    make_extractor,
)

ALL = [
    *(make_extractor(name) for name in extractor_names() if name not in ("regex", "composite")),
    make_extractor({"name": "regex", "pattern": r"(\d+)|(\w)"}),
    make_extractor(["tag_based", "boxed", "numeric"]),
    make_extractor({"name": "tag_based", "allow_unclosed": True}),
    make_extractor({"name": "code_block", "language": "python"}),
    make_extractor({"name": "tail", "unit": "words", "count": 3}),
    make_extractor({"name": "multiple_choice", "choices": "ABCDEFGHIJ"}),
    *(make_extractor({"name": "raw", "after": [name]}) for name in cleaner_names()),
]

# Pieces that the extractors react to, glued in any order, find more than random characters do.
PIECES = st.sampled_from(
    [
        *(
            "<answer>",
            "</answer>",
            "<think>",
            "</think>",
            "<reasoning>",
            "<|im_end|>",
            "\\boxed",
            "\\fbox{",
            "{",
            "}",
        ),
        *(
            "\\",
            "$",
            "$$",
            "\\(",
            "\\]",
            "####",
            "```",
            "```py\n",
            "~~~",
            "\n",
            " ",
            "\t",
            "\r",
            "“",
            "”",
            '"',
            "'",
        ),
        *(
            "1",
            "23",
            ",",
            ".",
            "-",
            "−",
            "/",
            "^",
            "e",
            "\\frac",
            "10",
            "×",
            "²",
            "%",
            "_",
            "A",
            "I",
            "(",
            ")",
            "b",
        ),
        *(
            "answer",
            " is ",
            ":",
            "=",
            "**",
            "`",
            "the correct option",
            "because",
            "!",
            "\u200b",
            "\x00",
            "١",
            "ß",
            "İ",
        ),
    ]
)
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)


@pytest.mark.parametrize("extractor", ALL, ids=lambda extractor: str(extractor.to_spec()))
@given(text=TEXTS)
def test_any_text_gives_an_answer_or_none(extractor: Extractor, text: str) -> None:
    found = extractor.extract(text)
    assert found is None or isinstance(found, str)
    assert extractor(text) == found
    if not extractor.empty_is_an_answer:
        assert found != ""


def trimmed(text: str) -> bool:
    return bool(text) and text == text.strip() and not re.search(r"[\u200b\u200e\u200f\u2060\ufeff]", text)


@given(prefix=TEXTS, answer=st.text().filter(trimmed))
def test_the_last_tags_win(prefix: str, answer: str) -> None:
    if re.search(r"</?answer\s*>", answer, re.IGNORECASE):
        return
    assert TagBasedExtractor(before=()).extract(f"{prefix}<answer>{answer}</answer>") == answer


@given(prefix=TEXTS, number=st.integers())
def test_the_last_gsm8k_line_wins(prefix: str, number: int) -> None:
    for shown in (str(number), f"{number:,}"):
        assert GSM8KExtractor(before=()).extract(f"{prefix}\n#### {shown}") == str(number)


BALANCED = st.recursive(
    st.text("ab1+-/ ^_", max_size=4),
    lambda inner: st.lists(inner | inner.map(lambda text: "{" + text + "}"), max_size=4).map("".join),
    max_leaves=12,
)


@given(prefix=TEXTS, answer=BALANCED.filter(trimmed), suffix=st.sampled_from(["", "$.", " }", "{{", "\\]"]))
@example(prefix="\\", answer="1", suffix="")
@example(prefix="\\boxed{", answer="{a}{b{c}}", suffix="}")
def test_the_last_box_wins_with_nested_braces(prefix: str, answer: str, suffix: str) -> None:
    for command in ("\\boxed", "\\fbox"):
        assert BoxedExtractor(before=()).extract(f"{prefix}{command}{{{answer}}}{suffix}") == answer


@given(
    prefix=TEXTS,
    number=st.integers(-(10**12), 10**12) | st.decimals(-(10**9), 10**9, places=3),
    unit=st.sampled_from(["", ".", " apples", "%", " €", ")"]),
)
def test_the_last_number_wins(prefix: str, number: object, unit: str) -> None:
    for shown in (str(number), f"{number:,}"):
        extracted = NumericExtractor(before=()).extract(f"{prefix}\nSo it is {shown}{unit}")
        assert extracted == str(number)


NO_THINKING = TEXTS.filter(lambda text: "think" not in text.lower() and "thought" not in text.lower())


@given(before=NO_THINKING, thought=NO_THINKING, after=NO_THINKING)
def test_thinking_is_hidden_and_all_else_kept(before: str, thought: str, after: str) -> None:
    hidden = make_extractor({"name": "raw", "before": ["thinking"]})
    assert hidden.extract(f"{before}<think>{thought}</think>{after}") == before + after
    assert hidden.extract(f"{before}<think>{thought}") == before
    assert hidden.extract(f"{thought}</think>{after}") == after


# A search that costs the square of the text would take hours here and meet the suite's time limit.
HOSTILE = [
    *(
        "1",
        "<answer>",
        "</answer>",
        "{",
        "}",
        "\\boxed{",
        "\\boxed5{",
        "\\",
        "1,22,",
        "1,222,",
        "1/",
        "1 1/2 ",
        "- ",
    ),
    *(
        "2^2",
        "1e1",
        "\\frac{1}{",
        "#### ",
        "A ",
        "(A",
        "answer to a ",
        "the answer is A ",
        "```",
        "```\n",
        "``` ``",
    ),
    *("\n", " ", "<think>", "</think>", "<|a", "“‘", '"', "**", ". A. ", "a1", "choose option "),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = "the answer is " + piece * (1_000_000 // len(piece))
    for name in ("tag_based", "gsm8k", "multiple_choice", "boxed", "numeric", "code_block", "pattern", "tail"):
        found = make_extractor(name).extract(text)
        assert found is None or len(found) <= len(text)
    make_extractor({"name": "raw", "before": cleaner_names(), "after": cleaner_names()}).extract(text)
