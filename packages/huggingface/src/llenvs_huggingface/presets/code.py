"""Programs: judged by running them, see `llenvs_huggingface.programs`."""

from __future__ import annotations

import json
from typing import Any

from llenvs_huggingface.item import Item, Row, text_of
from llenvs_huggingface.presets.preset import CODE_ANSWER, Preset
from llenvs_huggingface.programs.packed import unpacked_text


def _humaneval(row: Row) -> Item:
    tests = f"{row['test']}\ncheck({row['entry_point']})\n"
    expected = {"tests": tests, "prefix": row["prompt"], "entry_point": row["entry_point"]}
    return Item(row["prompt"], expected)


def _mbpp(row: Row) -> Item:
    tests = [row.get("test_setup_code") or "", *row["test_list"]]
    shown = "\n".join(row["test_list"])
    question = f"{row['text']} Your code should pass these tests:\n\n{shown}"
    return Item(question, {"tests": "\n".join(tests) + "\n"})


def _livecodebench(row: Row) -> Item:
    cases = json.loads(row["public_test_cases"]) + _private_cases(row["private_test_cases"])
    name = (json.loads(row["metadata"] or "{}") or {}).get("func_name")
    question = row["question_content"]
    if row.get("starter_code"):
        question += f"\n\nStart from this code:\n\n{row['starter_code']}"
    pairs = [[text_of(case["input"]), text_of(case["output"])] for case in cases]
    return Item(question, {"cases": pairs, "function": name})


def _private_cases(packed: str) -> list[Any]:
    """The hidden cases: JSON, or JSON in a pickle in zlib in base64 (which is read without unpickling)."""
    try:
        cases = json.loads(packed)
    except json.JSONDecodeError:
        cases = json.loads(unpacked_text(packed))
    if not isinstance(cases, list):
        raise ValueError("the private test cases are no list")
    return cases


def _code(
    name: str, repository: str, description: str, reader: Any, columns: tuple[str, ...], **rest: Any
) -> Preset:
    return Preset(name, repository, description, "programming", reader, columns, "program", CODE_ANSWER, **rest)


CODE = (
    _code(
        "humaneval",
        "openai/openai_humaneval",
        "HumanEval: complete a Python function",
        _humaneval,
        ("prompt", "test", "entry_point"),
        size=164,
    ),
    _code(
        "mbpp",
        "google-research-datasets/mbpp",
        "MBPP: short Python programs",
        _mbpp,
        ("text", "test_list"),
        subset="full",
        size=500,
    ),
    _code(
        "livecodebench",
        "lighteval/code_generation_lite",
        "LiveCodeBench: contest problems (subset: a release)",
        _livecodebench,
        ("question_content", "public_test_cases", "private_test_cases", "metadata"),
    ),
)
