"""Worked examples before the question, as turns of the chat or inside one text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts.catalog import Catalog, UnknownFewShot
from llenvs.inference.prompts.templates import QuestionTemplate


@dataclass(frozen=True, slots=True)
class FewShotExample:
    """One question with the reply that the model should imitate.

    `slots` holds values for the other slots of the template (e.g. ``choices``).
    """

    question: str
    answer: str
    slots: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, init=False)
class FewShot:
    """Examples that stand before the question.

    Attributes:
        examples: `FewShotExample` s or plain ``(question, answer)`` pairs.
        as_messages: True: each example is a user and an assistant turn, laid out by the question's own
            template and followed by its format hint, so that it looks like the real question.
            False: all examples are one text at the start of the first user message.
        header: said before the examples when they are one text.
        question_label: stands before each question in the text, and before the real one.
        answer_label: stands before each answer in the text. Set both labels to "" for a template that has
            labels of its own.
        name: unique among the registered sets; "" for one that is not registered.
        doc: one line for people.

    Raises:
        InvalidOption: an example is neither a pair nor a `FewShotExample`.
    """

    examples: tuple[FewShotExample, ...] = ()
    as_messages: bool = True
    header: str = "Here are some examples."
    question_label: str = "Question:"
    answer_label: str = "Answer:"
    name: str = ""
    doc: str = ""

    def __init__(
        self,
        examples: Iterable[FewShotExample | Sequence[str]] = (),
        as_messages: bool = True,
        header: str = "Here are some examples.",
        question_label: str = "Question:",
        answer_label: str = "Answer:",
        name: str = "",
        doc: str = "",
    ) -> None:
        object.__setattr__(self, "examples", tuple(_example(i, each) for i, each in enumerate(examples)))
        object.__setattr__(self, "as_messages", as_messages)
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "question_label", question_label)
        object.__setattr__(self, "answer_label", answer_label)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "doc", doc)

    def turns(self, template: QuestionTemplate) -> tuple[tuple[str, str], ...]:
        """The examples as (user text, assistant text), the questions laid out by `template`."""
        return tuple((template.render(e.question, **e.slots), e.answer) for e in self.examples)

    def text(self, template: QuestionTemplate) -> str:
        """All examples as one text; "" when there are none."""
        if not self.examples:
            return ""
        blocks = [self.header] if self.header else []
        for question, answer in self.turns(template):
            blocks.append(f"{self.labelled(question)}\n{_labelled(self.answer_label, answer)}")
        return "\n\n".join(blocks)

    def labelled(self, question: str) -> str:
        """`question` with the label that questions have in the text."""
        return _labelled(self.question_label, question)


def _labelled(label: str, text: str) -> str:
    return f"{label} {text}" if label else text


def _example(index: int, given: object) -> FewShotExample:
    if isinstance(given, FewShotExample):
        return given
    if (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and len(given) == 2
        and all(isinstance(part, str) for part in given)
    ):
        return FewShotExample(given[0], given[1])
    raise InvalidOption(f"few_shot.examples[{index}]", given, "is no example", valid="(question, answer)")


few_shots: Catalog[FewShot] = Catalog(UnknownFewShot, "`llenvs prompts` lists all")


def register_few_shot(few_shot: FewShot, *, replace: bool = False) -> FewShot:
    """Make a named set of examples known; InvalidOption when it has no name, or one that is taken."""
    if not few_shot.name:
        raise InvalidOption("few_shot.name", few_shot.name, "a registered set needs a name")
    return few_shots.add(few_shot, replace=replace)


def get_few_shot(name: str) -> FewShot:
    """The registered set called `name`; UnknownFewShot with the nearest names when there is none."""
    return few_shots.get(name)


def list_few_shots() -> tuple[FewShot, ...]:
    """All registered sets of examples."""
    return tuple(few_shots)


# They show a format on questions that belong to no benchmark. A model too small to follow an instruction about the
# format imitates it: on 30 arithmetic tasks of ReasoningGym SmolLM2-135M (Q4_1, greedy) used answer tags in no
# reply to `general_reasoning` alone, and in 26 with the set `answer_tags` before the question.
for _name, _doc, _ending in (
    ("answer_tags", "Two replies that end with answer tags.", "<answer>{}</answer>"),
    ("boxed_answer", "Two replies that end with \\boxed{}.", "\\boxed{{{}}}"),
    ("gsm8k_answer", "Two replies that end with #### and the answer.", "#### {}"),
):
    register_few_shot(
        FewShot(
            [
                ("How many days are in two weeks?", f"A week has 7 days. 2 * 7 = 14.\n{_ending.format(14)}"),
                ("What is 7 + 5?", f"7 + 5 = 12.\n{_ending.format(12)}"),
            ],
            name=_name,
            doc=_doc,
        )
    )
