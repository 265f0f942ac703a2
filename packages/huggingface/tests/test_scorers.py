"""Scorers against the formulas and the values of those who made them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs_huggingface.scoring import UnknownScorer, make_scorer, scorer_names
from llenvs_huggingface.scoring.choice import chosen
from llenvs_huggingface.scoring.number import last_number, whole_number
from llenvs_huggingface.scoring.text import normalized


def value(scoring: Any, answer: str, expected: Any, choices: tuple[str, ...] = ()) -> float:
    return make_scorer(scoring).score(answer, expected, choices).value


NUMBERS = """2300|2,300|$2,300|$2,300.00|2300.|2300 pages|**2300**|\\$2{,}300|2.3e3|4600/2|2 300|= 2300|x = 2300
2300\text{ pages}|about 2,300 pages|100+2200 = 2300|$2300$|\boxed{2300}|2300 km/h|2300 %|€2300|+2300"""


@pytest.mark.parametrize("answer", [answer for line in NUMBERS.split("\n") for answer in line.split("|")])
def test_numeric_takes_any_spelling(answer: str) -> None:
    assert value("numeric", answer, "2300") == 1.0


@pytest.mark.parametrize(
    "answer", ["2301", "-2300", "23.00", "2300/0", "", "none", "2300 or 2301", "0x8fc", "²300"]
)
def test_numeric_takes_no_other_number(answer: str) -> None:
    assert value("numeric", answer, "2300") == 0.0


def test_numbers_are_exact() -> None:
    assert value("numeric", "0.1", "1/10") == 1.0
    assert value("numeric", "0.3333333333333333", "1/3") == 0.0
    assert value("numeric", "9007199254740993", "9007199254740992") == 0.0
    assert value("numeric", "2^10", "1024") == 1.0
    assert value("numeric", "10^-2", "0.01") == 1.0
    assert value("numeric", "1 1/2", "1.5") == 1.0
    assert value("numeric", "None", "None") == 1.0
    assert value("numeric", "5", "None") == 0.0


@pytest.mark.parametrize(
    "text", ["9" * 1_000_000, "1e999999999", "9^999999999", "2^9999^9", "1/" * 5000, "." * 9000]
)
def test_huge_numbers_are_no_work(text: str) -> None:
    last_number(text)
    assert whole_number(text) is None
    assert value("numeric", text, "7") == 0.0


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_a_number_is_itself_however_it_is_written(number: Any) -> None:
    for text in (f"{number}", f"{number:,}", f"${number:,}", f"{number} apples", f"it is {number}."):
        assert value("numeric", text, str(number)) == 1.0


def test_tolerance() -> None:
    assert value({"name": "numeric_tolerance", "relative": 0.01}, "101", "100") == 1.0
    assert value({"name": "numeric_tolerance", "relative": 0.01}, "101.01", "100") == 0.0
    assert value({"name": "numeric_tolerance", "absolute": 0.5, "relative": 0}, "-0.5", "0") == 1.0
    assert value("numeric_tolerance", "3.1415927", "3.14159265") == 1.0
    assert value("numeric_tolerance", "no", "3") == 0.0
    assert make_scorer("numeric_tolerance").check("pi") is not None


def test_exact_and_text() -> None:
    assert value("exact", " Paris ", "paris") == 1.0
    assert value({"name": "exact", "ignore_case": False}, "paris", "Paris") == 0.0
    assert value("exact", "Paris.", "Paris") == 0.0
    assert value("text", "The  Paris!", "paris") == 1.0
    assert value("text", "Paris, France", "Paris") == 0.0
    assert normalized("(A)") == "a"  # SQuAD's would be empty, and equal to "(The)"


def squad_f1(prediction: str, truth: str) -> float:
    """The formula of SQuAD's evaluation, written from its paper's description."""
    import re
    import string
    from collections import Counter

    def tokens(text: str) -> list[str]:
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    left, right = tokens(prediction), tokens(truth)
    same = sum((Counter(left) & Counter(right)).values())
    if not same:
        return float(left == right)
    return 2 * same / (len(left) + len(right))


WORDS = st.lists(
    st.sampled_from(["the", "a", "Paris", "rome,", "in", "1999", "yes", "river"]), min_size=1, max_size=7
)


@given(WORDS, WORDS)
def test_f1_is_squads(left: list[str], right: list[str]) -> None:
    answer, expected = " ".join(left), " ".join(right)
    found = make_scorer("f1").score(answer, expected)
    if set(left) <= {"the", "a"} or set(right) <= {"the", "a"}:
        return  # SQuAD's normalisation leaves nothing of these, ours the words
    assert found.similarity == pytest.approx(squad_f1(answer, expected))
    assert found.value == float(normalized(answer) == normalized(expected))


CHOICES = ("ruler", "thermometer", "scale", "clock")


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", "**B**", "$B$", "\\text{B}", "thermometer"])
def test_a_letter_or_a_text_alone(answer: str) -> None:
    assert chosen(answer, CHOICES) == "B"


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("A thermometer.", "B"),
        ("B. thermometer", "B"),
        ("B) Thermometer", "B"),
        ("The answer is (B).", "B"),
        ("Option B", "B"),
        ("B is correct, since A is for lengths", "B"),
        ("C. thermometer", "C"),
        ("E", None),
        ("", None),
        ("none of these", None),
        ("I think it is a clock", None),
    ],
)
def test_chosen(answer: str, letter: str | None) -> None:
    assert chosen(answer, CHOICES) == letter


def test_options_that_are_letters_or_numbers() -> None:
    assert chosen("A", ("B", "A")) == "A"  # the letter of the list counts
    assert chosen("7", ("0", "7", "14")) == "B"
    assert chosen("5", ("5 m", "5 s")) is None
    assert chosen("10", tuple(map(str, range(10)))) is None


def test_sets_and_any_of() -> None:
    for answer in ("3, -3", "-3 and 3", "\\{3,-3\\}", "[-3; 3]", "3\n-3", "-3, 3, 3"):
        assert value("set", answer, "-3,3") == 1.0
    assert value("set", "3", "-3,3") == 0.0
    assert value("set", "3,-3,0", "-3,3") == 0.0
    assert value("set", "The Nile, amazon", ["Amazon", "Nile"]) == 1.0
    assert value("set", "1,000", "1000") == 1.0
    assert value("any_of", "the USA", ["United States", "U.S.A."]) == 1.0
    assert value("any_of", "Canada", ["United States", "U.S.A."]) == 0.0
    assert value({"name": "any_of", "scorer": "numeric"}, "$5", ["4", "5"]) == 1.0
    best = make_scorer({"name": "any_of", "scorer": "f1"}).score("red big car", ["blue", "big car"])
    assert best.similarity == pytest.approx(0.8)
    assert make_scorer("any_of").check([]) is not None


def test_letter_or_text() -> None:
    assert value("letter_or_text", "] ) >", "] ) >") == 1.0
    assert value("letter_or_text", "] >", "] ) >") == 0.0
    assert value("letter_or_text", "apple  banana.", "apple banana") == 1.0
    assert value("letter_or_text", "A", "(A)") == 1.0
    assert value("letter_or_text", "(C) or rather (A)", "(A)") == 1.0


def test_rouge1() -> None:
    """Values of rouge_score 0.1.2, ``rouge1`` without stemmer."""
    from llenvs_huggingface.scoring.collection import rouge1

    assert rouge1("The cat sat on the mat.", "the cat lay on a mat") == pytest.approx(2 / 3)
    assert rouge1("", "x") == 0.0
    assert rouge1("Don't do it", "do it") == pytest.approx(2 / 3)


def test_functions() -> None:
    assert value(lambda answer, expected: answer in expected, "a", "abc") == 1.0
    assert value(lambda answer, expected: 0.25, "a", "abc") == 0.25
    with pytest.raises(InvalidOption, match="must return a number"):
        value(lambda answer, expected: "yes", "a", "b")


@pytest.mark.parametrize(
    ("scoring", "error", "message"),
    [
        ("numerik", UnknownScorer, "did you mean 'numeric'"),
        ({"name": "exact", "case": True}, UnknownOption, "case"),
        ({"name": "exact", "ignore_case": 1}, InvalidOption, "scoring.ignore_case: must be true or false"),
        ({"name": "numeric_tolerance", "relative": -1}, InvalidOption, "scoring.relative: .*0 or more"),
        ({"name": "math", "time_limit": 0}, InvalidOption, "scoring.time_limit: "),
        ({"name": "any_of", "scorer": "nothing"}, UnknownScorer, "in scoring.scorer"),
        ({"relative": 1}, InvalidOption, "needs the scorer's name"),
        (7, InvalidOption, "is no scorer"),
    ],
)
def test_errors(scoring: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_scorer(scoring)


def test_every_scorer_is_made_by_its_name() -> None:
    for name in scorer_names():
        scorer = make_scorer(json.loads(json.dumps({"name": name})))
        assert scorer.name == name
        scorer.close()


@pytest.mark.parametrize("name", [n for n in scorer_names() if n not in ("program", "math", "closest")])
@given(answer=st.text(max_size=60))
def test_no_text_breaks_a_scorer(name: str, answer: str) -> None:
    score = make_scorer(name).score(answer, "42", ("41", "42"))
    assert score.value in (0.0, 1.0)
