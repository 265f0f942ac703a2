"""What holds for every segmenter and every text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llenvs.core.segmentation import (
    CompositeSegmenter,
    CustomSegmenter,
    LineSegmenter,
    NumberedStepSegmenter,
    ParagraphSegmenter,
    Segmenter,
    SentenceSegmenter,
    TokenSegmenter,
)


def words(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+\Z", text)


STREAMING: list[Segmenter] = [
    SentenceSegmenter(),
    SentenceSegmenter(split_lines=False),
    LineSegmenter(),
    ParagraphSegmenter(),
    NumberedStepSegmenter(),
    CompositeSegmenter(ParagraphSegmenter(), SentenceSegmenter(split_lines=False)),
    CompositeSegmenter(NumberedStepSegmenter(), SentenceSegmenter()),
    CompositeSegmenter(LineSegmenter(), SentenceSegmenter(), boundary="all"),
    CompositeSegmenter(NumberedStepSegmenter(), LineSegmenter(), boundary="first"),
]
"""Their boundaries are the same whether a text comes at once or piece by piece."""

OTHERS: list[Segmenter] = [
    CustomSegmenter(r";\s*"),
    CustomSegmenter(r"(?=[A-Z])", cut="before"),
    CustomSegmenter(lambda text: text.splitlines(keepends=True)),
    CustomSegmenter(lambda text: range(3, len(text), 7)),
    TokenSegmenter(words, size=3),
    CompositeSegmenter(CustomSegmenter(","), SentenceSegmenter()),
]

PIECES = st.sampled_from(
    [
        "The", "then", "I", "A", "x", "2", "3.14", "No", "Dr", "e.g", "i.e", "U.S", "etc", "p.m", "Fig",
        "Step", "Step 1", "Step 12:", "1.", "2)", "(3)", ".", "..", "...", "…", "!", "?", "?!", ",", ";",
        ":", '"', "'", "”", ")", "]", "(", "*", "**", "#", "-", "<answer>", "</answer>", "<", "=", "$", "$$",
        "\\", "\\(", "\\)", "\\[", "\\]", "`", "``", "```", "```py", "~~~", "~", "\\begin{align}",
        "\\end{align}", "\\boxed{", "\\frac{1. A}{",
        "{", "}", "。", "！", "」", "数学", "Привет", "é", "😀", " ", " ", " ", "  ", "\n", "\n",
        "\n\n", "\r\n", "\r", "\t", "\u2028", "\xa0", "\x00",
    ]
)  # fmt: skip
LIKELY = st.lists(PIECES, max_size=24).map("".join)
ANY = st.text(max_size=80)


@pytest.mark.parametrize("segmenter", [*STREAMING, *OTHERS], ids=repr)
@given(text=st.one_of(LIKELY, ANY))
@settings(max_examples=150, deadline=None)
def test_segments_concatenate_to_the_text_and_none_is_empty(segmenter: Segmenter, text: str) -> None:
    segments = segmenter.split(text)
    assert "".join(segments) == text
    assert all(segments)
    if not segmenter.blank_segments and len(segments) > 1:
        assert not any(segment.isspace() for segment in segments)


@pytest.mark.parametrize("segmenter", [*STREAMING, *OTHERS], ids=repr)
@given(text=ANY)
@settings(max_examples=30, deadline=None)
def test_the_same_text_gives_the_same_segments(segmenter: Segmenter, text: str) -> None:
    assert segmenter.split(text) == segmenter.split(text)


@pytest.mark.parametrize("segmenter", STREAMING, ids=repr)
@given(text=LIKELY, data=st.data())
@example(text="It costs $5. Then $x. Y$ holds. ", data=None)
@example(text="Well. . . Then. The end. ", data=None)
@example(text="```py. Not a fence` Yet. This", data=None)  # a back tick in its first line makes it none
@example(text="Say by J. R. Smith. By J. Rx. Yes", data=None)
@example(text="So \\boxed{a. B} {c. D}. \\f{1. A}{2. B} Yes. No", data=None)
@settings(max_examples=400, deadline=None)
def test_settled_boundaries_stay_and_nothing_comes_before_them(
    segmenter: Segmenter, text: str, data: st.DataObject | None
) -> None:
    whole = segmenter.boundaries(text)
    cuts = range(len(text)) if data is None else [data.draw(st.integers(0, len(text)))]
    for cut in cuts:
        settled = segmenter.boundaries(text[:cut], complete=False)
        last = settled[-1] if settled else 0
        assert settled == [b for b in whole if b <= last], (text[:cut], text[cut:])
        until = segmenter.settled_until(text[:cut])
        assert [b for b in settled if b < until] == [b for b in whole if b < until], (text[:cut], text[cut:])


@pytest.mark.parametrize("segmenter", STREAMING, ids=repr)
@pytest.mark.parametrize(
    "piece",
    [
        "$a ",
        "$$",
        "` a ",
        "\\( a ",
        "\\begin{a} ",
        "\\a{",
        "\\a{}",
        ".",
        "。",
        ". ",
        "a.a.",
        " ",
        "\n",
        "\r\n",
        " \n",
        "```",
        "```\n",
        "~~~a\n",
        "(",
        "#",
        "Step ",
        "1. ",
        "1234567890",
    ],
)
@pytest.mark.parametrize("end", ["x", ""])
def test_what_a_broken_model_repeats(segmenter: Segmenter, piece: str, end: str) -> None:
    text = piece * (20_000 // len(piece)) + end
    assert "".join(segmenter.split(text)) == text
    last = max(segmenter.boundaries(text, complete=False), default=0)
    assert [b for b in segmenter.boundaries(text) if b <= last] == segmenter.boundaries(text, complete=False)


@pytest.mark.parametrize("segmenter", STREAMING, ids=repr)
def test_white_space_without_end_is_read_once(segmenter: Segmenter) -> None:
    # half a second; looked at from each of its characters on it takes minutes
    text = "It ends." + "\r\n \n" * 80_000
    assert segmenter.split(text) == (text,)
