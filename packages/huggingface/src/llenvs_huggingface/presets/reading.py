"""Questions with an answer in words: with documents, from knowledge, and BIG-Bench Hard."""

from __future__ import annotations

from llenvs_huggingface.columns import ColumnReader, cell
from llenvs_huggingface.item import Item, Row, text_of
from llenvs_huggingface.presets.preset import TEXT_ANSWER, Preset

BBH = (
    "boolean_expressions",
    "causal_judgement",
    "date_understanding",
    "disambiguation_qa",
    "dyck_languages",
    "formal_fallacies",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "sports_understanding",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
    "web_of_lies",
    "word_sorting",
)


def _hotpot_qa(row: Row) -> Item:
    """The paragraphs are the context, each under its title."""
    context = row["context"]
    paragraphs = [
        f"{title}\n{''.join(sentences).strip()}"
        for title, sentences in zip(context["title"], context["sentences"], strict=True)
    ]
    return Item(row["question"], text_of(row["answer"]), None, "\n\n".join(paragraphs))


def _trivia_qa(row: Row) -> Item:
    """Any alias is right; the value itself is one of them, or is added."""
    aliases = [text_of(each) for each in cell(row, "answer.aliases")]
    value = row["answer"].get("value")
    return Item(row["question"], aliases if value is None or value in aliases else [text_of(value), *aliases])


def _truthful_generation(row: Row) -> Item:
    """Right and wrong texts, with a full stop each and "I have no comment." added, as the harness scores them."""
    right = _sentences(row["correct_answers"])
    if "I have no comment." not in right:
        right.append("I have no comment.")
    return Item(row["question"].strip(), {"right": right, "wrong": _sentences(row["incorrect_answers"])})


def _sentences(texts: list[str]) -> list[str]:
    stripped = [text.strip() for text in texts]
    return [text if text.endswith(".") else f"{text}." for text in stripped if text]


READING = (
    Preset(
        "hotpot_qa",
        "hotpotqa/hotpot_qa",
        "HotpotQA: questions over two of ten paragraphs",
        "question answering",
        _hotpot_qa,
        ("question", "answer", "context"),
        scoring={"name": "f1", "closed_answers": True},
        subset="distractor",
        split="validation",
        size=7405,
        note="fullwiki has no answers in its test split",
    ),
    Preset(
        "nq_open",
        "google-research-datasets/nq_open",
        "Natural Questions, open domain",
        "question answering",
        ColumnReader("question", "answer"),
        ("question", "answer"),
        scoring="any_of",
        split="validation",
        size=3610,
    ),
    Preset(
        "trivia_qa",
        "mandarjoshi/trivia_qa",
        "TriviaQA without documents",
        "question answering",
        _trivia_qa,
        ("question", "answer.aliases"),
        scoring="any_of",
        subset="rc.nocontext",
        split="validation",
    ),
    Preset(
        "truthful_qa_generation",
        "truthfulqa/truthful_qa",
        "TruthfulQA in free text, judged by likeness to right and wrong answers",
        "question answering",
        _truthful_generation,
        ("question", "correct_answers", "incorrect_answers"),
        scoring="closest",
        extractor=("tag_based", "raw"),
        subset="generation",
        split="validation",
        size=817,
        note="likeness (ROUGE-1) is not truth; the multiple-choice form truthful_qa is the surer measure",
    ),
    Preset(
        "bbh",
        "SaylorTwift/bbh",
        "BIG-Bench Hard: 27 tasks",
        "reasoning",
        ColumnReader("input", "target"),
        ("input", "target"),
        scoring="letter_or_text",
        extractor=TEXT_ANSWER,
        subsets=BBH,
    ),
    Preset(
        "hle",
        "cais/hle",
        "Humanity's Last Exam, by comparison of texts",
        "question answering",
        ColumnReader("question", "answer"),
        ("question", "answer", "answer_type"),
        scoring="math",
        gated=True,
        note="the benchmark itself judges answers by a model; a comparison of texts refuses right ones in other "
        "words; questions with an image need image_column=image",
    ),
)
