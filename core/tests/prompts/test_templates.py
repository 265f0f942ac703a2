import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts import QuestionTemplate, UnknownSlot, UnknownTemplate, get_template, list_templates


@given(st.text())
def test_any_question_comes_through_unchanged(question: str) -> None:
    assert get_template("plain").render(question) == question
    assert get_template("tagged").render(question) == f"<question>\n{question}\n</question>"


@pytest.mark.parametrize(
    "question", ["{choices}", "{question}", "{{question}}", "{0} {} {a.b!r}", "\\frac{1}{2}", "\\1"]
)
def test_braces_in_a_question_are_no_slots(question: str) -> None:
    rendered = get_template("multiple_choice").render(question, choices=["{question}", "two"])
    assert rendered == question + "\n\nA. {question}\nB. two"


def test_braces_in_a_template() -> None:
    template = QuestionTemplate("own", 'Reply {"a": {"b": 1}} and \\boxed{} and {{answer}}: {question}')
    assert template.slots == ("question",)
    assert template.render("why?") == 'Reply {"a": {"b": 1}} and \\boxed{} and {answer}: why?'


def test_unknown_slots_are_named_with_the_valid_ones() -> None:
    with pytest.raises(UnknownSlot) as caught:
        QuestionTemplate("own", "{question} {choises}")
    assert "unknown slot 'choises'; did you mean 'choices'" in str(caught.value)
    assert "valid: question, choices, task, context" in str(caught.value)
    assert "write {{choises}} for the text {choises}" in str(caught.value)
    with pytest.raises(UnknownSlot, match="template plain has the slots question"):
        get_template("plain").render("q", choices="x")
    own = QuestionTemplate("own", "{hint} {question}", extra_slots=("hint",))
    assert own.render("q", hint="h") == "h q"


def test_a_slot_without_a_value_is_an_error() -> None:
    with pytest.raises(InvalidOption, match=re.escape("template multiple_choice: needs a value for {choices}")):
        get_template("multiple_choice").render("q")


def test_a_template_that_loses_the_question_is_refused() -> None:
    with pytest.raises(InvalidOption, match="would lose the question"):
        QuestionTemplate("own", "Answer this.")


def test_at_most_26_choices_are_lettered() -> None:
    rendered = get_template("multiple_choice").render("q", choices=[str(i) for i in range(26)])
    assert rendered.endswith("\nZ. 25")
    with pytest.raises(InvalidOption, match="at most 26"):
        get_template("multiple_choice").render("q", choices=[str(i) for i in range(27)])


def test_names() -> None:
    assert [t.name for t in list_templates()] == [
        "plain",
        "question_answer",
        "tagged",
        "task_question",
        "context_question",
        "multiple_choice",
    ]
    assert get_template("question_answer").render("1 + 1?") == "Question: 1 + 1?\nAnswer:"
    with pytest.raises(UnknownTemplate, match="did you mean 'question_answer'"):
        get_template("question_answr")
