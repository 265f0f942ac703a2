"""Prompt fragments: named pieces of instruction from which system prompts and format hints are put together.

The wording is short and literal on purpose. A model too small to follow it is better shown than told: see the
few-shot sets of the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts.catalog import Catalog, UnknownFragment


@dataclass(frozen=True, slots=True)
class PromptFragment:
    """One named piece of a prompt.

    Attributes:
        name: unique among the registered fragments.
        text: what the model reads.
        doc: one line for people: what it is for.
        answer_extractor: name of the extractor that reads the answer format which this fragment asks for;
            None when it asks for no format.
    """

    name: str
    text: str
    doc: str = ""
    answer_extractor: str | None = None


def agreed_extractor(owner: str, names: Iterable[str | None]) -> str | None:
    """The one extractor that all of `names` agree on; None entries have no say.

    Raises:
        InvalidOption: two different extractors are named, so the prompt asks for two answer formats at once.
    """
    wanted = sorted({name for name in names if name is not None})
    if len(wanted) > 1:
        raise InvalidOption(
            owner,
            ", ".join(wanted),
            "asks for two answer formats at once",
            valid="parts that share one format, or an explicit answer_extractor",
        )
    return wanted[0] if wanted else None


fragments: Catalog[PromptFragment] = Catalog(UnknownFragment, "`llenvs prompts` lists all")


def register_fragment(fragment: PromptFragment, *, replace: bool = False) -> PromptFragment:
    """Make `fragment` known by its name; InvalidOption when the name is taken and `replace` is not set."""
    return fragments.add(fragment, replace=replace)


def get_fragment(name: str) -> PromptFragment:
    """The registered fragment called `name`; UnknownFragment with the nearest names when there is none."""
    return fragments.get(name)


def list_fragments() -> tuple[PromptFragment, ...]:
    """All registered fragments."""
    return tuple(fragments)


for _fragment in (
    PromptFragment("helpful", "You are a helpful assistant.", "The plain assistant role."),
    PromptFragment("solve_problems", "You solve problems carefully.", "The role of a careful solver."),
    PromptFragment("step_by_step", "Think step by step.", "Asks for reasoning before the answer."),
    PromptFragment(
        "show_work", "Show the steps of your calculation.", "Asks for the calculation to be written out."
    ),
    PromptFragment("concise", "Be brief.", "Keeps the reply short."),
    PromptFragment("no_code", "Do not write code.", "Rules out programs as answers."),
    PromptFragment("no_explanation", "Do not explain.", "Rules out anything beside the answer."),
    PromptFragment(
        "answer_tags",
        "Write your final answer between <answer> and </answer>.",
        "The answer in answer tags.",
        answer_extractor="tag_based",
    ),
    PromptFragment(
        "boxed_answer",
        "Write your final answer in \\boxed{}.",
        "The answer in LaTeX \\boxed{}, the convention of MATH.",
        answer_extractor="boxed",
    ),
    PromptFragment(
        "gsm8k_answer",
        'End with a last line of "#### " and the answer as a number.',
        "The answer after ####, the convention of GSM8K.",
        answer_extractor="gsm8k",
    ),
    PromptFragment(
        "multiple_choice_letter",
        'End with "The answer is X", where X is the letter of the right choice.',
        "The letter of a choice.",
        answer_extractor="multiple_choice",
    ),
    PromptFragment(
        "answer_sentence",
        'End with "The answer is" and your answer.',
        "The answer in a closing sentence.",
        answer_extractor="pattern",
    ),
    PromptFragment(
        "answer_last_line",
        "Write only the final answer on the last line.",
        "The answer alone on the last line.",
        answer_extractor="last_line",
    ),
    PromptFragment(
        "answer_only",
        "Reply with the final answer only.",
        "Nothing but the answer.",
        answer_extractor="raw",
    ),
    PromptFragment(
        "code_block",
        "Write the complete program in one ```python code block.",
        "The answer as one fenced Python block.",
        answer_extractor="code_block",
    ),
    PromptFragment(
        "one_command",
        "Reply with one command and nothing else.",
        "One action a turn, for text games and terminals.",
        answer_extractor="raw",
    ),
    PromptFragment(
        "use_tools",
        "Use the tools when they help. When the task is done, reply without a tool call.",
        "When to call a tool and when to stop.",
    ),
):
    register_fragment(_fragment)
