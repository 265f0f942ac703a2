"""The other segmenters, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from llenvs.core import (
    CompositeSegmenter,
    CustomSegmenter,
    LineSegmenter,
    NumberedStepSegmenter,
    ParagraphSegmenter,
    SegmentedEnvironment,
    SentenceSegmenter,
    TokenSegmenter,
)
from llenvs.core.errors import InvalidOption
from llenvs.core.segmentation import Segmenter


def test_lines() -> None:
    assert LineSegmenter().split("a\nb  \n\n\n  c\r\nd\re") == ("a\n", "b  \n\n\n", "  c\r\n", "d\r", "e")
    assert LineSegmenter().split("\n\n a\n\n") == ("\n\n a\n\n",)
    assert LineSegmenter().split("") == ()


def test_paragraphs() -> None:
    text = "One\ntwo\n\nThree\r\n \r\n\r\n  Four\n\n```\nx\n\ny\n```\n\nFive\n"
    assert ParagraphSegmenter().split(text) == (
        "One\ntwo\n\n",
        "Three\r\n \r\n\r\n",
        "  Four\n\n",
        "```\nx\n\ny\n```\n\n",
        "Five\n",
    )


@pytest.mark.parametrize(
    "steps",
    [
        ["Let us see.\n", "1. Count.\n   They are 2.\n", "2. Add 3.5.\n", "3. Done"],
        ["1) Count\n", "2) Add"],
        ["(1) Count\n", "(2) Add"],
        ["Step 1: Count.", " Step 2: Add.", " Step 3: Done."],
        ["**Step 1:** Count, as in step 2 of the text.\n\n", "**Step 2:** Add.\n"],
        ["## Step 1 - Count\n\n2.5 dogs\n\n", "## Step 2 - Add\n"],
        ["STEP 1\nCount\n", "step 12\nAdd"],
        ["- 1. Count\n", "- 2. Add"],
        ["1. Code:\n```\n2. not a step\n```\n", "2. Add"],
        ["In 1999. we counted\n2024. again"],
        ["Step 1st"],
    ],
)
def test_numbered_steps(steps: list[str]) -> None:
    assert list(NumberedStepSegmenter().split("".join(steps))) == steps


def test_labels_of_steps() -> None:
    assert NumberedStepSegmenter("Schritt").split("Schritt 1: a.\nStep 2: b.\nSchritt 3") == (
        "Schritt 1: a.\nStep 2: b.\n",
        "Schritt 3",
    )
    assert NumberedStepSegmenter(()).split("Step 1: a\n2. b") == ("Step 1: a\n", "2. b")


def test_custom() -> None:
    assert CustomSegmenter(r"\n---\n").split("a\n---\nb\n---\n") == ("a\n---\n", "b\n---\n")
    assert CustomSegmenter(re.compile("(?:Thought|Action):"), cut="before").split("Thought: a Action: b") == (
        "Thought: a ",
        "Action: b",
    )
    assert CustomSegmenter(lambda text: [2, 5]).split("abcdefg") == ("ab", "cde", "fg")
    assert CustomSegmenter(lambda text: [text[:1], "", text[1:]]).split("abc") == ("a", "bc")


def test_tokens() -> None:
    words = TokenSegmenter(lambda text: re.findall(r"\s*\S+|\s+\Z", text), size=2)
    assert words.split("one two three four five") == ("one two", " three four", " five")
    assert words.boundaries("one two three four five", complete=False) == [7]


class Bytes:
    """A tokenizer whose tokens are the bytes of UTF-8."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode(errors="replace")


def test_tokens_that_spell_a_character_together_stay_together() -> None:
    assert TokenSegmenter(Bytes(), size=2).split("abcé€x") == ("ab", "cé", "€", "x")
    assert TokenSegmenter(Bytes(), size=1).split("é€") == ("é", "€")


class Pieces:
    """A tokenizer that writes no space before the first token, as those of SentencePiece do."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.pieces = re.findall(r" ?[^ ]+| ", text)
        return list(range(len(self.pieces)))

    def decode(self, ids: list[int]) -> str:
        return "".join(self.pieces[i] for i in ids).removeprefix(" ")


def test_tokens_that_are_written_otherwise_at_the_beginning() -> None:
    assert TokenSegmenter(Pieces(), size=2).split("a bc  d   e f") == ("a bc", "  d", "  ", " e f")


class CountingBytes(Bytes):
    """How many tokens are decoded in all."""

    decoded = 0

    def decode(self, ids: list[int]) -> str:
        self.decoded += len(ids)
        return super().decode(ids)


def test_no_token_is_decoded_again_for_each_later_segment() -> None:
    tokenizer, text = CountingBytes(), "aé😀" * 200
    assert TokenSegmenter(tokenizer, size=1).split(text) == tuple(text)
    assert tokenizer.decoded <= 2 * len(text.encode())  # what is inside of a character is tried again


def test_tokens_of_tokenizers_and_transformers() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.BPE({c: i for i, c in enumerate("abcdef ")}, [])
    tokenizer = tokenizers.Tokenizer(model)
    assert TokenSegmenter(tokenizer, size=3).split("abc de") == ("abc", " de")
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    assert TokenSegmenter(fast, size=3).split("abc de") == ("abc", " de")


def test_composites() -> None:
    text = "Look. Here\n\n1. Count. Two\n2. Add"
    both = CompositeSegmenter(ParagraphSegmenter(), NumberedStepSegmenter())
    assert both.split(text) == ("Look. Here\n\n", "1. Count. Two\n", "2. Add")
    common = CompositeSegmenter(SentenceSegmenter(), ParagraphSegmenter(), boundary="all")
    assert common.split(text) == ("Look. Here\n\n", "1. Count. Two\n2. Add")
    first = CompositeSegmenter(NumberedStepSegmenter(), SentenceSegmenter(), boundary="first")
    assert first.split(text) == ("Look. Here\n\n", "1. Count. Two\n", "2. Add")
    assert first.split("No steps. None") == ("No steps.", " None")


def test_a_composite_waits_for_the_slowest() -> None:
    both = CompositeSegmenter(LineSegmenter(), SentenceSegmenter())
    text = "Pay $5. And\nthen $x"
    # whether "$5. And\nthen $" is a formula is still open, so no boundary after it is settled
    assert LineSegmenter().boundaries(text, complete=False) == [12]
    assert both.boundaries(text, complete=False) == [7, 12]
    assert both.boundaries(text[:-2], complete=False) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CustomSegmenter("("), "is no regular expression"),
        (lambda: CustomSegmenter(3), "must be a regular expression or a function"),  # type: ignore[arg-type]
        (lambda: CustomSegmenter(re.compile(b"a")), "not for bytes"),  # type: ignore[arg-type]
        (lambda: CustomSegmenter("a", cut="inside"), 'valid: "after", "before"'),  # type: ignore[arg-type]
        (lambda: CustomSegmenter(str.split).split("a b"), "differ at offset 1 ('b' for ' b')"),
        (lambda: CustomSegmenter(lambda t: [9]).split("a b"), "offsets outside of a text of 3 characters"),
        (lambda: CustomSegmenter(lambda t: [None]).split("a b"), "must give texts, or offsets"),  # type: ignore
        (lambda: TokenSegmenter(3), "must be a tokenizer of transformers"),
        (lambda: TokenSegmenter(str.split, size=0), "must be a positive integer"),
        (lambda: TokenSegmenter(str.split).split("a b"), "do not concatenate to the text"),
        (lambda: CompositeSegmenter(), "must hold at least one"),
        (lambda: CompositeSegmenter(SentenceSegmenter), "write SentenceSegmenter()"),  # type: ignore[arg-type]
        (lambda: CompositeSegmenter(LineSegmenter(), boundary="none"), "valid: any, all, first"),  # type: ignore
        (lambda: NumberedStepSegmenter([""]), "must be words"),
        (lambda: NumberedStepSegmenter(3), "must be words"),  # type: ignore[arg-type]
        (lambda: SentenceSegmenter(abbreviations=[3]), "must be words"),  # type: ignore[list-item]
        (lambda: SentenceSegmenter(abbreviations=3), "must be words"),  # type: ignore[arg-type]
        (lambda: SentenceSegmenter(split_lines="no"), "must be True or False"),  # type: ignore[arg-type]
        (lambda: CustomSegmenter(lambda t: None).split("a b"), "must give a list"),  # type: ignore
        (lambda: CustomSegmenter(str).split("a b"), "must give a list"),
        (lambda: TokenSegmenter(lambda t: None).split("a b"), "gives a list of the texts"),
        (lambda: TokenSegmenter(lambda t: [1, 2]).split("a b"), "gives a list of the texts"),
    ],
)
def test_what_is_refused(make: Any, said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "segmenter",
    [
        SentenceSegmenter(),
        LineSegmenter(),
        ParagraphSegmenter(),
        NumberedStepSegmenter(),
        CustomSegmenter("a"),
        CustomSegmenter(lambda text: [text]),
        TokenSegmenter(lambda text: [text]),
        CompositeSegmenter(LineSegmenter()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("wrong", [b"a. B", None, ["a"], 3])
def test_only_texts_are_divided(segmenter: Segmenter, wrong: Any) -> None:
    for use in (segmenter.split, segmenter.boundaries):
        with pytest.raises(InvalidOption, match="text: must be a str"):
            use(wrong)


def test_an_environment_refuses_what_is_no_segmenter(addition: Any) -> None:
    for wrong, said in [
        (SentenceSegmenter, "write SentenceSegmenter()"),
        (r"\n", "goes into CustomSegmenter(...)"),
        (str.split, "goes into CustomSegmenter(...)"),
        (None, "must be a Segmenter"),
    ]:
        with pytest.raises(InvalidOption) as caught:
            SegmentedEnvironment(addition(), wrong)  # type: ignore[arg-type]
        assert said in str(caught.value)
        assert caught.value.field == "segmenter"
