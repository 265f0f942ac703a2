"""Each named cleaner, through the public way: an extractor that lists it."""

from __future__ import annotations

import pytest

from llenvs.core.extraction import RawExtractor, cleaner_names


@pytest.mark.parametrize(
    ("cleaner", "text", "expected"),
    [
        ("special_tokens", "<s>[INST] q [/INST]42</s>", " q 42"),
        ("special_tokens", "4<|im_end|><|endoftext|>2<|eot_id|><eos><end_of_turn>", "42"),
        ("special_tokens", "a <|> b <| c |>", "a <|> b <| c |>"),
        ("special_tokens", "<｜end▁of▁sentence｜>x", "x"),
        ("thinking", "a<think>b</think>c", "ac"),
        ("thinking", "a<THINK>b<think>c</Think>d", "ad"),
        ("thinking", "a<thinking>b</think>c</thinking>d", "ad"),
        ("thinking", "a<think>b", "a"),
        ("thinking", "a</think>b", "b"),
        ("thinking", "a<think>b</think>c</think>d", "d"),
        ("thinking", "[THINK]a[/THINK]b", "b"),
        ("thinking", "<thinker>a</thinker>", "<thinker>a</thinker>"),
        ("reasoning", "<reasoning>a</reasoning>b", "b"),
        ("whitespace", "\ufeff\u200b \n a b\u00a0\t", "a b"),
        ("blank_lines", "\n \n  a\n\n  b\n\n", "  a\n\n  b"),
        ("punctuation", "42.", "42"),
        ("punctuation", "Paris!?", "Paris"),
        ("punctuation", "5!", "5!"),
        ("punctuation", "巴黎。", "巴黎"),
        ("punctuation", "3.14", "3.14"),
        ("quotes", '"a"', "a"),
        ("quotes", "“a”", "a"),
        ("quotes", "„a“", "a"),
        ("quotes", "«a»", "a"),
        ("quotes", "“‘a’”", "a"),
        ("quotes", '"a" and "b"', '"a" and "b"'),
        ("quotes", "“a", "“a"),
        ("quotes", '"', '"'),
        ("latex", "$5$", "5"),
        ("latex", "$$5$$", "5"),
        ("latex", r"\(5\)", "5"),
        ("latex", r"\[5\]", "5"),
        ("latex", "$5", "$5"),
        ("latex", "$a$ and $b$", "$a$ and $b$"),
        ("latex", r"$5\$", r"$5\$"),
        ("boxed", r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("boxed", r"\boxed{1}+\boxed{2}", r"\boxed{1}+\boxed{2}"),
        ("latex_text", r"\text{Monday}", "Monday"),
        ("latex_text", r"\text{a} b", r"\text{a} b"),
        ("markdown", "**a**", "a"),
        ("markdown", "`a_b`", "a_b"),
        ("markdown", "**a** and **b**", "**a** and **b**"),
        ("markdown", "2*3", "2*3"),
        ("markdown", "** 7", " 7"),
    ],
)
def test_cleaner(cleaner: str, text: str, expected: str) -> None:
    assert RawExtractor(after=(cleaner,)).extract(text) == expected


def test_every_cleaner_is_tested_above() -> None:
    parameters = test_cleaner.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {case[0] for case in parameters} == set(cleaner_names())


def test_after_cleaners_undo_wrappings_inside_wrappings_in_any_order() -> None:
    names = ("whitespace", "punctuation", "markdown", "latex", "quotes")
    for order in (names, names[::-1]):
        assert RawExtractor(after=order).extract(' "**$5$.**" . ') == "5"


def test_before_cleaners_run_once_in_order() -> None:
    assert RawExtractor(before=("quotes",)).extract("“‘a’”") == "‘a’"
