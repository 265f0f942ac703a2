"""States are values, small, without the bytes of images; prompts are the user's to shape."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs import Action, State
from llenvs.core.errors import InvalidAction, InvalidOption

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


def test_images_are_shown_and_only_their_hash_is_hidden(tmp_path: Path) -> None:
    import datasets
    import pyarrow
    import pyarrow.parquet

    features = datasets.Features(
        {"question": datasets.Value("string"), "answer": datasets.Value("string"), "image": datasets.Image()}
    )
    rows = [{"question": "What is it?", "answer": "a cat", "image": {"bytes": PNG, "path": "cat.png"}}] * 2
    table = pyarrow.Table.from_pylist(rows, schema=features.arrow_schema)
    pyarrow.parquet.write_table(table, tmp_path / "images.parquet")
    env = llenvs.make("huggingface/dataset", data_files=str(tmp_path / "images.parquet"), image_column="image")
    state, _ = env.reset(options={"task_index": 1})
    (image,) = state.observation.images
    assert (image.data, image.media_type) == (PNG, "image/png")
    digest = {"bytes": len(PNG), "sha256": hashlib.sha256(PNG).hexdigest()}
    assert state.hidden["row"]["image"] == {"bytes": digest, "path": "cat.png"}
    assert State.from_json(state.to_json()) == state
    assert env.step(state, Action("a cat")).rewards.total == 1.0
    plain = llenvs.make("huggingface/dataset", data_files=str(tmp_path / "images.parquet"))
    assert plain.reset(options={"task_index": 0})[0].observation.images == ()


def test_a_step_needs_no_data(make: Callable[..., Any], tmp_path: Path) -> None:
    env = make("math_500", "math_500_test")
    state, _ = env.reset(options={"task_index": 2})
    other = llenvs.make("huggingface/math_500", data=[{"problem": "1+1", "answer": "2"}])
    again = State.from_json(state.to_json())
    assert other.step(again, Action("\\boxed{3, -3}")) == env.step(state, Action("\\boxed{3, -3}"))
    other.close()


def test_a_state_of_another_environment_is_refused() -> None:
    env = llenvs.make("huggingface/dataset", data=[{"question": "q", "answer": "a"}])
    other = llenvs.make("huggingface/dataset", data=[{"question": "q", "answer": ["a", "b"]}])
    with pytest.raises(InvalidAction, match="another environment"):
        env.step(other.reset(seed=0)[0], Action("a"))
    state, _ = env.reset(seed=0)
    with pytest.raises(InvalidAction, match="another environment"):
        env.step(State(state.observation, {"anything": 1}, state.metadata), Action("a"))
    for choices in (None, -1, "abc", [1, 2]):
        with pytest.raises(InvalidAction, match="options are no list of texts"):
            env.step(State(state.observation, {**state.hidden, "choices": choices}, state.metadata), Action("a"))


def test_templates_and_system_prompts() -> None:
    rows = [{"q": "What is {level}?", "a": "1", "level": "hard", "choices": ["1", "2"]}]
    env = llenvs.make(
        "huggingface/dataset",
        data=rows,
        question_column="q",
        answer_column="a",
        prompt_template="[{level}] {question} \\boxed{{answer}} {x y}? {{level}}".replace(" {x y}", ""),
        system_prompt="Be brief.",
    )
    state, _ = env.reset(seed=0)
    assert state.observation.prompt == "[hard] What is {level}? \\boxed{answer}? {level}"
    assert [m.role for m in state.observation.messages] == ["system", "user"]
    with pytest.raises(InvalidOption, match=r"prompt_template: \{lvel\} is no column; did you mean \{level\}"):
        llenvs.make(
            "huggingface/dataset", data=rows, question_column="q", answer_column="a", prompt_template="{lvel}"
        )


def test_options_change_a_preset(make: Callable[..., Any]) -> None:
    env = make("gsm8k", "gsm8k_main_test", ground_truth_extractor="last_line", scoring="exact")
    assert env.reset(options={"task_index": 1})[0].hidden["expected_answer"] == "#### 2,300"
    env = make("hotpot_qa", "hotpot_qa_distractor_validation", context_column="level")
    assert env.reset(options={"task_index": 0})[0].observation.prompt.startswith("easy\n\nThe author")
    env = make("mmlu", "mmlu_test", scoring="text")
    assert env.reset(options={"task_index": 0})[0].hidden["expected_answer"] == "Mercury"
    env = make("arc_challenge", "arc_challenge_test", answer_extractor="raw", scoring=lambda a, e: a == e)
    assert env.step(env.reset(options={"task_index": 0})[0], Action("thermometer")).rewards.total == 1.0
    with pytest.raises(InvalidOption, match="scoring: does not suit row 0: choice needs the options"):
        make("gsm8k", "gsm8k_main_test", scoring="choice")


def test_importing_the_adapter_imports_no_upstream() -> None:
    code = (
        "import sys, llenvs\n"
        "from llenvs_huggingface import ADAPTER\n"
        "names = [i.name for i in ADAPTER.list_environments()]; ADAPTER.describe('gsm8k')\n"
        "print(len(names) > 30, [m for m in ('datasets', 'huggingface_hub', 'pyarrow', 'pandas', 'numpy', "
        "'sympy', 'math_verify') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_loading_changes_nothing_global(make: Callable[..., Any]) -> None:
    import logging

    import datasets

    def settings() -> list[Any]:
        return [
            datasets.are_progress_bars_disabled(),
            datasets.config.HF_UPDATE_DOWNLOAD_COUNTS,
            logging.getLogger("datasets").level,
            logging.getLogger().handlers[:],
        ]

    before = settings()
    make("gsm8k", "gsm8k_main_train")
    assert settings() == before
