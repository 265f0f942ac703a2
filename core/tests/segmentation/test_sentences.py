"""Sentences: what is divided and what stays whole."""

from __future__ import annotations

import pytest

from llenvs.core.segmentation import SentenceSegmenter
from llenvs.core.segmentation.protected import fenced_code, protected

DIVIDED = {
    "plain": ["First, count the animals.", " There are 2 dogs.", " Each has 4 legs."],
    "marks": ["Wait!", " Is it so?!", " Yes."],
    "titles": ["Dr. Smith met Mr. Jones at 5 p.m. on Jan. 5.", " They talked."],
    "decimals": ["Pi is 3.14159 and e is 2.718.", " Both are irrational."],
    "number at the end": ["The sum is 12.", " 3 more make 15."],
    "quotes": ['He said "Stop."', " Then he left."],
    "quoted and going on": ['"Stop!" he said.', " She did."],
    "brackets": ["(It holds.)", " So it does [see above].", " Done."],
    "ellipsis": ["Well... maybe not.", " Let me think…", " Yes."],
    "counting": ["Add 1, 2, ... 10 together.", " That is 55."],
    "spaced dots": ["Well. . . maybe.", " Good."],
    "latin": ["See e.g. Fig. 3 and Eq. (2), i.e. the second one.", " Done."],
    "et cetera": ["Cats, dogs, etc. are animals.", " Birds, etc.", " They are too."],
    "acronym": ["The U.S. Army came.", " It left the U.S.", " Then it returned."],
    "no": ["Take No. 5 and p. 12.", " Is it right?", " No.", " That is wrong."],
    "initials": ["J. R. Smith and John F. Kennedy agree.", " So do I."],
    "initials in a sentence": ["It is by J. R. Smith.", " J. Doe and (A. Roe) agree.", " So do I."],
    "variables": ["So y = x.", " Therefore A = B.", " Since B = C we are done."],
    "factorial": ["We know 5! = 120.", " Good."],
    "tags": ["It is 10.", " <answer>10</answer>"],
    "comparison": ["Is it 3? < 4 anyway.", " Good."],
    "bold": ["**Step one.**", " Count them.", " *Then* add."],
    "file names": ["Open notes.txt or see https://example.org/a.b?c=D.", " Then read."],
    "lower case": ["approx. five apples.", " That is all."],
    "dashes": ["It is so. - Or is it.", " Hm."],
    "inline code": ["Use `a.b. C` here.", " Then stop."],
    "double back ticks": ["Use ``a. `B` c. D`` here.", " Then stop."],
    "dollars": ["So $x = 1. Y$ holds.", " Next."],
    "money": ["It costs $5.", " Then he pays $6."],
    "range of money": ["It costs $5-$10.", " Then he pays."],
    "escaped dollar": ["It costs \\$5.", " Then \\$6."],
    "double dollars": ["Now $$a = 1. B = 2.$$ follows.", " Next."],
    "parentheses": ["We get \\(f(x) = 2. Z\\).", " QED."],
    "display": ["So\n", "\\[ a = 1.\nB = 2. C \\]\n", "holds."],
    "environment": ["So \\begin{align*} a &= 1. \\\\\n\nB &= 2. \\end{align*} holds.", " Next."],
    "command": ["So \\boxed{a = 1. B}.", " And \\frac{1. A}{2. {B}. C} {d.", " E} follow."],
    "open command": ["So \\boxed{a.", " B"],
    "fenced": ["Run it.\n", "```python\nx = 1. Y\n\nprint('a. B')\n```\n", "Done."],
    "open fence": ["Run it.\n", "```\nx = 1. Y\n\nA. B"],
    "longer fence": ["````\n```\nA. B\n```\nA. B\n````\n", "Done."],
    "tildes": ["~~~ text\nA. B\n```\nA. B\n~~~\n", "Done."],
    "list": ["1. First item.\n", "2. Second. item\n", "   a) Third.", " It has two."],
    "bullets": ["- One.\n", "- Two.\n\n", "* Three"],
    "blank lines": ["A line\n\n\n", "  Another line.", " End.\n\n"],
    "windows": ["A.\r\n", "B. C\r\n\r\n", "D"],
    "chinese": ["一共有2只狗。", "每只有4条腿！", "所以是8。"],
    "japanese quotes": ["「はい。」", "と言った。"],
    "cyrillic": ["Это 3.5 м.", " Хорошо!", " Да?"],
    "devanagari": ["यह है।", " ठीक।"],
    "arabic and urdu": ["هل هذا صحيح؟", " نعم.", " یہ ہے۔", " ٹھیک۔"],
    "armenian, amharic, khmer, burmese": ["Այո։", " አዎ።", " បាទ។", " ဟုတ်ကဲ့။", " Ok"],
    "spanish": ["¿Qué es?", " ¡Hola!", " Sí."],
    "emoji": ["Great!", " 😀 Next one?", " 😀"],
    "emoji after the mark": ["Great!😀", " Next one.❤️", " Yes"],
    "nothing to divide": ["no end here"],
    "white space": ["  \n "],
}


@pytest.mark.parametrize("name", DIVIDED)
def test_sentences(name: str) -> None:
    wanted = DIVIDED[name]
    assert list(SentenceSegmenter().split("".join(wanted))) == wanted


def test_line_breaks_need_not_end_a_sentence() -> None:
    segmenter = SentenceSegmenter(split_lines=False)
    assert segmenter.split("A text that\nis wrapped. It\nends.\n\nNew paragraph") == (
        "A text that\nis wrapped.",
        " It\nends.\n\n",
        "New paragraph",
    )
    assert segmenter.split("It ends.\nNext. One") == ("It ends.\n", "Next.", " One")


def test_further_abbreviations() -> None:
    assert SentenceSegmenter().split("Siehe Abb. Drei. Gut.") == ("Siehe Abb.", " Drei.", " Gut.")
    segmenter = SentenceSegmenter(abbreviations=["Abb."])
    assert segmenter.split("Siehe Abb. Drei. Gut.") == ("Siehe Abb. Drei.", " Gut.")
    assert repr(segmenter) == "SentenceSegmenter(abbreviations=['abb'])"


def test_what_is_not_decided_yet() -> None:
    segmenter = SentenceSegmenter()
    assert segmenter.boundaries("It is 3. ", complete=False) == []
    assert segmenter.boundaries("It is 3. T", complete=False) == [8]
    # an initial of a name, or the end of the sentence: the next word tells
    assert segmenter.boundaries("He left the U.S. The", complete=False) == []
    assert segmenter.boundaries("He left the U.S. The ", complete=False) == [16]
    assert segmenter.boundaries("He left the U.S. Theodore ", complete=False) == []
    # money, or a formula: the next dollar tells
    assert segmenter.boundaries("It is $5. Then he", complete=False) == []
    assert segmenter.boundaries("It is $5. Then he has $", complete=False) == []
    assert segmenter.boundaries("It is $5. Then he has $6", complete=False) == [9]
    assert segmenter.boundaries("It is $5. Then he", complete=True) == [9]


def test_protected_spans() -> None:
    text = "a `b` $c$ \\(d\\) and $5"
    assert [text[slice(*span)] for span in protected(text).spans] == ["`b`", "$c$", "\\(d\\)"]
    assert protected(text, complete=False).open_from == text.index("$5")
    assert protected(text).filtered([1, 2, 3, 5, 7, 10]) == [1, 2, 5, 10]
    assert protected("``` not a fence ``` $x$").spans == ((0, 19), (20, 23))
    code = "a\n```\nb\n\nc\n```\nd"
    assert [code[slice(*span)] for span in fenced_code(code).spans] == ["```\nb\n\nc\n```"]
