"""Mathematics: grade school to competitions."""

from __future__ import annotations

from typing import Any

from llenvs.core.extraction import make_extractor
from llenvs_huggingface.columns import ColumnReader
from llenvs_huggingface.presets.preset import MATH_ANSWER, NUMERIC_ANSWER, Preset

_AFTER_HASHES = make_extractor({"name": "gsm8k", "before": []}).extract
_LAST_BOX = make_extractor({"name": "boxed", "before": []}).extract

HENDRYCKS_MATH = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)


def _aime(name: str, repository: str, description: str, question: str, answer: str, **rest: Any) -> Preset:
    return Preset(
        name,
        repository,
        description,
        "mathematics",
        ColumnReader(question, answer),
        (question, answer),
        scoring="numeric",
        extractor=NUMERIC_ANSWER,
        **rest,
    )


MATHEMATICS = (
    Preset(
        "gsm8k",
        "openai/gsm8k",
        "GSM8K: grade school word problems",
        "mathematics",
        ColumnReader("question", "answer", ground_truth=_AFTER_HASHES),
        ("question", "answer"),
        scoring="numeric",
        extractor=NUMERIC_ANSWER,
        subset="main",
        size=1319,
    ),
    Preset(
        "gsm_plus",
        "qintongli/GSM-Plus",
        "GSM-Plus: GSM8K problems, perturbed",
        "mathematics",
        ColumnReader("question", "answer"),
        ("question", "answer"),
        scoring="numeric",
        extractor=MATH_ANSWER,
        note="the answer of critical-thinking rows is the word None",
    ),
    _aime(
        "aime_2024", "HuggingFaceH4/aime_2024", "AIME 2024, I and II", "problem", "answer", split="train", size=30
    ),
    _aime(
        "aime_2024_maxwell_jia", "Maxwell-Jia/AIME_2024", "AIME 2024, I and II", "Problem", "Answer", split="train"
    ),
    _aime("aime_2025", "math-ai/aime25", "AIME 2025, I and II", "problem", "answer", size=30),
    _aime(
        "aime_2025_yentinglin", "yentinglin/aime_2025", "AIME 2025, I and II", "problem", "answer", split="train"
    ),
    _aime(
        "aime_1983_2024",
        "di-zhang-fdu/AIME_1983_2024",
        "AIME 1983 to 2024 (2024 part II alone)",
        "Question",
        "Answer",
        split="train",
    ),
    Preset(
        "math_500",
        "HuggingFaceH4/MATH-500",
        "MATH-500: competition problems with LaTeX answers",
        "mathematics",
        ColumnReader("problem", "answer"),
        ("problem", "answer"),
        scoring="math",
        extractor=MATH_ANSWER,
        size=500,
    ),
    Preset(
        "math",
        "EleutherAI/hendrycks_math",
        "MATH (Hendrycks et al.): seven subjects of competition problems",
        "mathematics",
        ColumnReader("problem", "solution", ground_truth=_LAST_BOX),
        ("problem", "solution"),
        scoring="math",
        extractor=MATH_ANSWER,
        subsets=HENDRYCKS_MATH,
        size=5000,
    ),
)
