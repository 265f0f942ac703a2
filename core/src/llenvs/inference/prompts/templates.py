"""Question templates: how the task's text is laid out in the user message."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts.catalog import Catalog, UnknownTemplate
from llenvs.inference.prompts.slots import UnknownSlot, fill, slot_names

SLOTS: Mapping[str, str] = {
    "question": "the question, or the environment's first message",
    "choices": "the choices of a multiple-choice question, one a line as 'A. ...'",
    "task": "the unchanging description of the task",
    "context": "a passage the question is about",
}
"""The slots every template may use, with what each holds."""


def lettered(choices: Sequence[str]) -> str:
    """`choices` one a line as ``A. first``; at most 26 (InvalidOption above)."""
    letters = string.ascii_uppercase
    if len(choices) > len(letters):
        raise InvalidOption("choices", len(choices), "too many to letter", valid="at most 26")
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(letters, choices, strict=False))


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """A layout with named slots.

    Attributes:
        name: unique among the registered templates.
        template: the text; ``{question}`` must occur in it. Only ``{identifier}`` is a slot, other braces are
            text, and ``{{identifier}}`` prints ``{identifier}``.
        doc: one line for people.
        extra_slots: slots of its own, beside those in `SLOTS`.

    Raises:
        UnknownSlot: the template uses a slot that is neither in `SLOTS` nor in `extra_slots`.
        InvalidOption: it has no ``{question}``.
    """

    name: str
    template: str
    doc: str = ""
    extra_slots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra_slots", tuple(self.extra_slots))
        valid = (*SLOTS, *self.extra_slots)
        for slot in self.slots:
            if slot not in valid:
                raise UnknownSlot(
                    slot,
                    valid,
                    f"in template {self.name}; valid: {', '.join(valid)}; "
                    f"write {{{{{slot}}}}} for the text {{{slot}}}",
                )
        if "question" not in self.slots:
            raise InvalidOption(
                f"template {self.name}", self.template, "would lose the question: it has no {question}"
            )

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots this template uses, in order."""
        return slot_names(self.template)

    def render(self, question: str, **values: str | Sequence[str]) -> str:
        """The user message.

        Args:
            question: inserted unchanged, braces and all.
            values: one for every other slot the template uses; a sequence is lettered (``A. ...``).

        Raises:
            UnknownSlot: a value for a slot this template does not use.
            InvalidOption: a slot without a value.
        """
        given: dict[str, str] = {"question": question}
        for name, value in values.items():
            given[name] = value if isinstance(value, str) else lettered(value)
        for name in given:
            if name not in self.slots:
                raise UnknownSlot(name, self.slots, f"template {self.name} has the slots {', '.join(self.slots)}")
        missing = [slot for slot in self.slots if slot not in given]
        if missing:
            raise InvalidOption(
                f"template {self.name}",
                sorted(given),
                f"needs a value for {', '.join('{' + slot + '}' for slot in missing)}",
            )
        return fill(self.template, given)


templates: Catalog[QuestionTemplate] = Catalog(
    UnknownTemplate, "`llenvs prompts` lists all; a text with {question} in it is taken literally"
)


def register_template(template: QuestionTemplate, *, replace: bool = False) -> QuestionTemplate:
    """Make `template` known by its name; InvalidOption when the name is taken and `replace` is not set."""
    return templates.add(template, replace=replace)


def get_template(name: str) -> QuestionTemplate:
    """The registered template called `name`; UnknownTemplate with the nearest names when there is none."""
    return templates.get(name)


def list_templates() -> tuple[QuestionTemplate, ...]:
    """All registered question templates."""
    return tuple(templates)


PLAIN = register_template(QuestionTemplate("plain", "{question}", "The question as it is (the default)."))

for _template in (
    QuestionTemplate("question_answer", "Question: {question}\nAnswer:", "The labels of few-shot papers."),
    QuestionTemplate("tagged", "<question>\n{question}\n</question>", "The question in XML tags."),
    QuestionTemplate("task_question", "{task}\n\n{question}", "The task's description, then the question."),
    QuestionTemplate(
        "context_question", "{context}\n\nQuestion: {question}", "A passage, then a question about it."
    ),
    QuestionTemplate("multiple_choice", "{question}\n\n{choices}", "A question, then its lettered choices."),
):
    register_template(_template)
