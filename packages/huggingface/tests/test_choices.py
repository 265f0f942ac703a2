"""The order of options: a function of seed and row, the same everywhere."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import llenvs
from llenvs.core.errors import UpstreamFailed
from llenvs_huggingface.choices import Options, read_options, right_option, shown_order


def test_the_order_is_fixed_for_all_time() -> None:
    """Computed by hand with another tool: sha256 of ``0\\n["q",["a","b","c","d"]]\\ni``."""
    import hashlib

    digests = [hashlib.sha256(f'0\n["q",["a","b","c","d"]]\n{i}'.encode()).hexdigest() for i in range(4)]
    assert shown_order(0, "q", ["a", "b", "c", "d"]) == sorted(range(4), key=lambda i: digests[i])
    assert shown_order(0, "q", ["a", "b", "c", "d"]) == shown_order(0, "q", ("a", "b", "c", "d"))


def test_right_answers_are_spread_over_the_letters() -> None:
    letters = Counter(shown_order(3, f"question {i}", ["w", "x", "y", "z"]).index(0) for i in range(400))
    assert set(letters) == {0, 1, 2, 3}
    assert min(letters.values()) > 70


def test_a_row_keeps_its_order_in_any_selection(make: Callable[..., Any]) -> None:
    def orders(**options: Any) -> dict[str, list[str]]:
        env = make("gpqa_diamond", "gpqa_diamond_train", **options)
        states = [env.reset(options={"task_index": i}, seed=i)[0] for i in range(len(env))]
        for state in states:
            letter = "ABCD".index(state.hidden["expected_answer"])
            assert state.hidden["choices"][letter] == state.hidden["row"]["Correct Answer"]
        return {state.hidden["row"]["Record ID"]: state.hidden["choices"] for state in states}

    every = orders(seed=5)
    assert len(every) == 2
    for row, order in orders(seed=5, size=1).items():
        assert every[row] == order
    assert any(orders(seed=seed) != every for seed in range(6, 12))
    kept = orders(shuffle_choices=False)
    assert kept["r1"] == ["electron", "proton", "neutron", "photon"]


def test_cells() -> None:
    assert read_options("['x', \"y's\"]") == (("x", "y's"), ())
    assert read_options({"text": ["x", "y"], "label": ["1", "2"]}) == (("x", "y"), ("1", "2"))
    assert read_options([{"label": "A", "text": "x"}]) == (("x",), ("A",))
    assert read_options({"A": "x", "B": 2}) == (("x", "2"), ("A", "B"))
    for cell in ("__import__('os')", "x", [], None, list(range(27))):
        with pytest.raises(ValueError, match="option"):
            read_options(cell)


@pytest.mark.parametrize(
    ("answer", "index"), [(2, 2), ("C", 2), ("(c)", 2), ("z", 2), ("2", 2), (2.0, 2), ("x", 0), (" y ", 1)]
)
def test_right_option(answer: Any, index: int) -> None:
    assert right_option(answer, Options(("x", "y", "z"))) == index


@pytest.mark.parametrize("answer", [3, -1, "D", "w", None, "", True, "9"])
def test_no_option(answer: Any) -> None:
    with pytest.raises(ValueError, match="names n"):
        right_option(answer, Options(("x", "y", "z")))


def test_labels_come_before_letters() -> None:
    assert right_option("2", Options(("x", "y", "z"), ("1", "2", "3"))) == 1


def test_options_in_columns_of_their_own_and_rows_that_do_not_fit() -> None:
    rows = [
        {"q": "one?", "a": "blue", "o1": "red", "o2": "blue"},
        {"q": "two?", "a": "green", "o1": "red", "o2": "blue"},
    ]
    options = {"question_column": "q", "answer_column": "a", "choices_column": ["o1", "o2"]}
    env = llenvs.make("huggingface/dataset", data=rows, **options)
    state, _ = env.reset(options={"task_index": 0})
    assert state.observation.prompt == "one?\n\nA. red\nB. blue"
    assert env.step(state, llenvs.Action("B")).rewards.total == 1.0
    with pytest.raises(UpstreamFailed, match="row 1: ValueError: 'green' names none of the 2 options"):
        env.reset(options={"task_index": 1})
