"""Each kind of extractor on texts whose answer a reader can tell."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs.core.extraction import make_extractor


def check(spec: Any, text: str, expected: str | None) -> None:
    assert make_extractor(spec).extract(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<answer>4</answer>", "4"),
        ("<answer>1</answer> no, <ANSWER> 2 </answer>", "2"),
        ("I use <answer> tags: <answer>7</answer>", "7"),
        ("<answer><answer>8</answer></answer>", "8"),
        ("<answer>3</answer> <answer>4", "3"),
        ("<answer>a\n b</answer >", "a\n b"),
        ("<answer></answer>", None),
        ("<answer>1</answer> <answer> </answer>", None),
        ("none", None),
        ("</answer>5<answer>", None),
        ("<think><answer>1</answer></think>x", None),
        ("<think>hm</think><answer>5</answer><|im_end|>", "5"),
        ("hm <answer>1</answer></think><answer>2</answer>", "2"),
        ("<think>x <answer>1</answer>", None),
    ],
)
def test_tag_based(text: str, expected: str | None) -> None:
    check("tag_based", text, expected)


def test_tag_based_options() -> None:
    check({"name": "tag_based", "allow_unclosed": True}, "<answer>3</answer> <answer> 4", "4")
    check({"name": "tag_based", "allow_unclosed": True}, "<answer>3</answer> <answer> ", "3")
    check({"name": "tag_based", "ignore_case": False}, "<answer>3</answer> <Answer>4</Answer>", "3")
    check({"name": "tag_based", "tag": "final.x"}, "<final.x>3</final.x><finalax>4</finalax>", "3")
    check({"name": "tag_based", "tag": "think", "before": []}, "<think>3</think>", "3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#### 42", "42"),
        ("so 6 * 7 = <<6*7=42>>42\n#### 1,234.", "1234"),
        ("#### $1,000.50", "1000.50"),
        ("#### -5\n#### \u22127 apples", "-7"),
        ("#### Step 1\nfoo\n#### **18**", "18"),
        ("####7\n#### done", "7"),
        ("#### 3/4", "3/4"),
        ("#### x", None),
        ("### 5", None),
    ],
)
def test_gsm8k(text: str, expected: str | None) -> None:
    check("gsm8k", text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(d)", "D"),
        ("B) Paris", "B"),
        ("B. Paris", "B"),
        ("C: 12", "C"),
        ("**C**", "C"),
        ("*(C)*", "C"),
        ("Option B", "B"),
        ("The answer is (B).", "B"),
        ("Answer: C", "C"),
        ("answer: option D", "D"),
        ("**Answer:** **D**", "D"),
        ("The answer is: \n\nD", "D"),
        ("Answer: A. The man", "A"),
        ("The correct option is C) London", "C"),
        ("I choose E", "E"),
        (r"\boxed{C}", "C"),
        (r"The answer is $\boxed{\text{(B)}}$", "B"),
        ("<answer>B</answer>", "B"),
        # The last match wins,
        ("(A) is wrong, (B) is right", "B"),
        ("Answer: A. Wait. Answer: B", "B"),
        ("Both A and B. Final answer: A", "A"),
        # but an explanation after a stated answer does not undo it.
        ("The answer is B. Option A is wrong.", "B"),
        ("B is the correct answer. A is not.", "B"),
        # Articles, pronouns, abbreviations, variables.
        ("A man walks.", None),
        ("I think A man is C", "C"),
        ("The answer is a banana", None),
        ("The answer is A banana", None),
        ("A because it rains", "A"),
        ("I'd say\nA\nas I said", "A"),
        ("It's A.", "A"),
        ("USA, e.g., i.e., U.S.A done", None),
        ("f(a) = 3", None),
        ("Don't send an E-mail", None),
        ("F", None),
        ("no letters", None),
    ],
)
def test_multiple_choice(text: str, expected: str | None) -> None:
    check("multiple_choice", text, expected)


@pytest.mark.parametrize(
    ("choices", "text", "expected"),
    [
        ("ABCDEFGHIJ", "I think so", None),
        ("ABCDEFGHIJ", "I would say J", "J"),
        ("ABCDEFGHIJ", "Answer: I", "I"),
        ("ABCDEFGHIJ", "(I)", "I"),
        ("AB", "The answer is C", None),
        (["1", "2", "3"], "Answer: 2", "2"),
        ("abc", "Answer: B", "b"),
    ],
)
def test_multiple_choice_choices(choices: Any, text: str, expected: str | None) -> None:
    check({"name": "multiple_choice", "choices": choices}, text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\boxed{5}", "5"),
        (r"so $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (r"\fbox{x} \boxed{y}", "y"),
        (r"\boxed{x} \fbox{y}", "y"),
        (r"\boxed 5", "5"),
        (r"$\boxed 5$.", "5"),
        (r"\boxed 5.", "5"),
        (r"\boxed {8}", "8"),
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\left\{ 1 \right.}", r"\left\{ 1 \right."),
        (r"a \\ \boxed{1 \\ 2}", r"1 \\ 2"),
        (r"\\boxed{7}", "7"),
        (r"}}}{ \boxed{9} {", "9"),
        (r"{{\boxed{a{b}c}}}", "a{b}c"),
        (r"\boxed{$5$}", "5"),
        (r"\boxed{}", None),
        (r"\boxedx{5}", None),
        (r"\boxed{5", None),
    ],
)
def test_boxed(text: str, expected: str | None) -> None:
    check("boxed", text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I have 3 apples and 4", "4"),
        ("The answer is 42.", "42"),
        ("42kg", "42"),
        # signs
        ("-5", "-5"),
        ("\u22125", "-5"),
        ("x = \u20132.5", "-2.5"),
        ("(\u22123)", "-3"),
        ("+7", "7"),
        ("10-3", "3"),
        ("2024-01-05", "05"),
        ("pages 5\u20137", "7"),
        # thousands
        ("1,234,567.89", "1234567.89"),
        ("12,34,567", "1234567"),
        ("1_000", "1000"),
        ("1{,}234", "1234"),
        (r"1\,234", "1234"),
        ("1\u202f234", "1234"),
        ("1 234", "234"),
        ("1,2,3", "3"),
        # decimals and exponents
        (".5", "0.5"),
        ("5.", "5"),
        ("1e10", "1e10"),
        ("1.5E-3", "1.5e-3"),
        ("10^{3}", "1e3"),
        ("10**6", "1e6"),
        (r"3 \times 10^{-4}", "3e-4"),
        ("3 x 10^8 m/s", "3e8"),
        ("6×10²³", "6e23"),
        ("2^{10}", "2^10"),
        # fractions
        ("3/4", "3/4"),
        ("-3 / 4", "-3/4"),
        (r"\frac{3}{4}", "3/4"),
        (r"-\frac{3}{4}", "-3/4"),
        (r"\dfrac{-3}{4}", "-3/4"),
        (r"\frac12", "1/2"),
        (r"1\frac{3}{4}", "7/4"),
        ("2 1/2 cups", "5/2"),
        ("1/2/2024", "2024"),
        # per cent and currency
        ("50%", "50"),
        ("$1,000", "1000"),
        ("-$5", "-5"),
        ("$-5$", "-5"),
        ("€ 12", "12"),
        ("USD42", "42"),
        # digits of words, indices and exponents come last
        ("5 mol of H2O", "5"),
        ("x_1 = 7, x_{2}", "7"),
        ("y = 9 x^2", "9"),
        (r"2\times5", "5"),
        ("H2O", "2"),
        ("none", None),
    ],
)
def test_numeric(text: str, expected: str | None) -> None:
    check("numeric", text, expected)


@pytest.mark.parametrize(("text", "expected"), [("12.5 %", "12.5%"), (r"50\%", "50%"), ("50", "50")])
def test_numeric_keeps_percent_on_demand(text: str, expected: str) -> None:
    check({"name": "numeric", "keep_percent": True}, text, expected)


@pytest.mark.parametrize(
    ("text", "expected"), [("a\n b \n\n", "b"), ("a\r\nb\r\n", "b"), ("x</s>", "x"), ("", None), (" \n", None)]
)
def test_last_line(text: str, expected: str | None) -> None:
    check("last_line", text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("```\na\n```\n```py\n\n  b\n```\nend", "  b"),
        ("```python\nx", "x"),
        ("```python\nx\n```\n```", "x"),
        ("````md\n```py\nx\n```\n````", "```py\nx\n```"),
        ("~~~\na\n```\n~~~", "a\n```"),
        ("Here: ```python\nx = 2\n```", "x = 2"),
        ("use `x` and ```y``` inline", None),
        ("```\n```", None),
        ("no code", None),
    ],
)
def test_code_block(text: str, expected: str | None) -> None:
    check("code_block", text, expected)


def test_code_block_options() -> None:
    python = {"name": "code_block", "language": "python"}
    check(python, "```py\n1\n```\n```js\n2\n```", "1")
    check(python, "```{.Python}\n1\n```", "1")
    check(python, "```\n1\n```", None)
    check({"name": "code_block", "allow_unclosed": False}, "```\n1\n```\n```\n2", "1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is 42.", "42"),
        ("Final answer: **7**", "7"),
        ("**Final Answer:** 7", "7"),
        ("**The answer is 42**", "42"),
        ("answer = x+1", "x+1"),
        ("the answer is 3.14. This is pi.", "3.14"),
        ("the answer is 5. 2 + 3 = 5", "5"),
        ("The answer is B. Because", "B"),
        ("The answer is J. K. Rowling.", "J. K. Rowling"),
        ("The answer is Dr. Who", "Dr. Who"),
        ("The final answer is: $\\boxed{5}$. I hope it is correct.", "5"),
        ("The final answer is:\n\\[\n\\boxed{5}\n\\]\nDone", "5"),
        ("Answer:\n\n42\nmore", "42"),
        ("the answer is 1, no, the answer is 2", "2"),
        ("The answer is 5. Answer:", "5"),
        ("the answer to 5 + 3 is 8", "8"),
        ('The answer is "Paris".', "Paris"),
        ("The answer is “Rome”!", "Rome"),
        ("The answer is 5!", "5!"),
        ("Answer: $5", "$5"),
        ("answers are nice", None),
        ("The answer is", None),
    ],
)
def test_pattern(text: str, expected: str | None) -> None:
    check("pattern", text, expected)


def test_pattern_phrases() -> None:
    check({"name": "pattern", "phrases": ["my (guess)"]}, "answer: 1, my (guess): 2", "2")


def test_tail() -> None:
    check("tail", "x" * 100 + "y" * 200, "y" * 200)
    check({"name": "tail", "count": 2, "unit": "words"}, " a  b \n c ", "b \n c")
    check({"name": "tail", "count": 3, "unit": "words"}, "a b", "a b")


def test_regex_takes_the_first_group_of_the_last_match() -> None:
    check({"name": "regex", "pattern": r"a(\d)(\d)?"}, "a1 a23", "2")
    check({"name": "regex", "pattern": r"a\d"}, "a1 a2", "a2")
    check({"name": "regex", "pattern": r"(?P<x>a)(?P<y>\d)?", "group": "y"}, "a1", "1")
    check({"name": "regex", "pattern": r"(?P<x>a)(?P<y>\d)?", "group": 2}, "a1 a", None)
    check({"name": "regex", "pattern": "q"}, "a", None)


@pytest.mark.parametrize("text", ["", "  <think>x</think> y<|im_end|>\n"])
def test_raw_and_unbound_native_change_nothing(text: str) -> None:
    check("raw", text, text)
    check("native", text, text)
    check(None, text, text)


def test_native_is_bound_by_the_environment_wherever_it_stands() -> None:
    def upstream(text: str) -> str | None:
        return text.upper() if text else None

    chain = make_extractor(["boxed", "native"])
    bound = chain.bind(upstream)
    assert bound.extract("<think>a") == "<THINK>A"
    assert bound.extract(r"\boxed{a}") == "a"
    assert bound.extract("") is None
    assert chain.extract("a") == "a"
    assert make_extractor("boxed").bind(upstream) == make_extractor("boxed")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"<answer>1</answer>\boxed{3}", "1"),
        ("\\boxed{3}\nend", "3"),
        ("<answer></answer>\nbar", "bar"),
        ("", None),
    ],
)
def test_composite_takes_the_first_that_finds_something(text: str, expected: str | None) -> None:
    check(["tag_based", "boxed", "last_line"], text, expected)
