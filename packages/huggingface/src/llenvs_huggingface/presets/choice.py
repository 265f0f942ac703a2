"""Multiple choice."""

from __future__ import annotations

import re
from typing import Any

from llenvs_huggingface.choices import Options, read_options, right_option
from llenvs_huggingface.columns import ColumnReader
from llenvs_huggingface.item import Item, Row, text_of
from llenvs_huggingface.presets.preset import CHOICE_ANSWER, Preset

_WRONG_FIRST = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
_DISTRACTORS = ("distractor1", "distractor2", "distractor3")


def _right_and_wrong(question: str, right: str, wrong: tuple[str, ...], context: str | None = None) -> Any:
    """A reader of rows with the right option in one column and wrong ones in others."""

    def read(row: Row) -> Item:
        texts = tuple(text_of(row[column]).strip() for column in (right, *wrong))
        return Item(text_of(row[question]), 0, texts, "" if context is None else text_of(row[context]))

    return read


def _mc1(row: Row) -> Item:
    """TruthfulQA with one right option: ``labels`` has a 1 at it."""
    targets = row["mc1_targets"]
    return Item(row["question"], list(targets["labels"]).index(1), tuple(map(text_of, targets["choices"])))


def _hellaswag(row: Row) -> Item:
    """The beginning of a scene, cleaned of WikiHow's marks as the lm-evaluation-harness does it."""
    begun = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
    texts = tuple(map(_without_marks, row["endings"]))
    return Item(_without_marks(begun), right_option(int(row["label"]), Options(texts)), texts)


def _without_marks(text: str) -> str:
    text = text.strip().replace(" [title]", ". ")
    return re.sub(r"\[[^\]]*\]", "", text).replace("  ", " ").strip()


def _winogrande(row: Row) -> Item:
    """A sentence with a blank; the answer "1" or "2" counts from 1."""
    texts = (text_of(row["option1"]), text_of(row["option2"]))
    return Item(row["sentence"], right_option(int(row["answer"]) - 1, Options(texts)), texts)


def _musr(row: Row) -> Item:
    """A story to read; the options are a Python list in a text."""
    options = read_options(row["choices"])
    return Item(row["question"], right_option(row["answer_index"], options), options.texts, row["narrative"])


def _choice(
    name: str, repository: str, description: str, reader: Any, columns: tuple[str, ...], **rest: Any
) -> Preset:
    return Preset(
        name, repository, description, "multiple choice", reader, columns, "choice", CHOICE_ANSWER, **rest
    )


def _gpqa(subset: str, description: str, size: int) -> Preset:
    return _choice(
        subset,
        "Idavidrein/gpqa",
        description,
        _right_and_wrong("Question", "Correct Answer", _WRONG_FIRST),
        ("Question", "Correct Answer", *_WRONG_FIRST),
        subset=subset,
        split="train",
        shuffle_choices=True,
        size=size,
        gated=True,
    )


def _arc(name: str, subset: str, size: int) -> Preset:
    return _choice(
        name,
        "allenai/ai2_arc",
        f"{subset}: science questions of school exams",
        ColumnReader("question", "answerKey", "choices"),
        ("question", "choices", "answerKey"),
        subset=subset,
        size=size,
    )


CHOICE = (
    _choice(
        "mmlu",
        "cais/mmlu",
        "MMLU: 57 subjects, four options",
        ColumnReader("question", "answer", "choices"),
        ("question", "choices", "answer"),
        subset="all",
        size=14042,
    ),
    _choice(
        "mmlu_pro",
        "TIGER-Lab/MMLU-Pro",
        "MMLU-Pro: harder questions, three to ten options",
        ColumnReader("question", "answer_index", "options"),
        ("question", "options", "answer_index"),
    ),
    _gpqa("gpqa_diamond", "GPQA Diamond: graduate-level science", 198),
    _gpqa("gpqa_main", "GPQA: graduate-level science", 448),
    _gpqa("gpqa_extended", "GPQA Extended: graduate-level science", 546),
    _arc("arc_challenge", "ARC-Challenge", 1172),
    _arc("arc_easy", "ARC-Easy", 2376),
    _choice(
        "truthful_qa",
        "truthfulqa/truthful_qa",
        "TruthfulQA, one right option (mc1)",
        _mc1,
        ("question", "mc1_targets"),
        subset="multiple_choice",
        split="validation",
        shuffle_choices=True,
        size=817,
    ),
    _choice(
        "commonsense_qa",
        "tau/commonsense_qa",
        "CommonsenseQA: five options",
        ColumnReader("question", "answerKey", "choices"),
        ("question", "choices", "answerKey"),
        split="validation",
        size=1221,
        note="the test split has no answers",
    ),
    _choice(
        "openbookqa",
        "allenai/openbookqa",
        "OpenBookQA: elementary science, four options",
        ColumnReader("question_stem", "answerKey", "choices"),
        ("question_stem", "choices", "answerKey"),
        subset="main",
        size=500,
    ),
    _choice(
        "sciq",
        "allenai/sciq",
        "SciQ: science exam questions, four options",
        _right_and_wrong("question", "correct_answer", _DISTRACTORS),
        ("question", "correct_answer", *_DISTRACTORS),
        shuffle_choices=True,
        size=1000,
        note="the supporting paragraph is shown with context_column=support",
    ),
    _choice(
        "hellaswag",
        "Rowan/hellaswag",
        "HellaSwag: how a scene goes on, four endings",
        _hellaswag,
        ("activity_label", "ctx_a", "ctx_b", "endings", "label"),
        split="validation",
        size=10042,
        note="the test split has no answers",
    ),
    _choice(
        "winogrande",
        "allenai/winogrande",
        "WinoGrande: which of two fills the blank",
        _winogrande,
        ("sentence", "option1", "option2", "answer"),
        subset="winogrande_xl",
        split="validation",
        size=1267,
        note="the test split has no answers",
    ),
    _choice(
        "musr",
        "TAUR-Lab/MuSR",
        "MuSR: murder mysteries (split murder_mysteries, object_placements or team_allocation)",
        _musr,
        ("narrative", "question", "choices", "answer_index"),
        split="murder_mysteries",
        size=250,
    ),
)
