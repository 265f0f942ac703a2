"""Rows from lists, files, folders and data sets; their order, their columns, their images."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gem_play import boxed

import llenvs
from llenvs import Action, Environment
from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs_gem.rows import shuffled

Env = Callable[..., Environment[Any]]
ROWS = [{"problem": f"What is {i}?", "answer": i} for i in range(5)]


def _prompts(env: Environment[Any]) -> list[str]:
    return [env.reset(options={"task_index": i})[0].observation.prompt for i in range(len(env))]


def test_files(env: Env, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow
    from pyarrow import parquet

    text = "\n".join(json.dumps(row) for row in ROWS)
    (tmp_path / "a.jsonl").write_text(text + "\n\n", encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(ROWS), encoding="utf-8")
    lines = ["problem,answer", *(f"{row['problem']},{row['answer']}" for row in ROWS)]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.json", "a.csv", "a.parquet"):
        maths = env("math:GSM8K", dataset=str(tmp_path / name))
        assert _prompts(maths) == [row["problem"] for row in ROWS]
        state, _ = maths.reset(options={"task_index": 3})
        assert maths.step(state, Action(boxed("3"))).rewards.total == 1.0


def test_data_sets_and_their_folders(env: Env, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    one = datasets.Dataset.from_list(ROWS)
    both = datasets.DatasetDict({"train": one, "test": one.select([4])})
    both.save_to_disk(str(tmp_path / "both"))
    one.save_to_disk(str(tmp_path / "one"))
    assert len(env("math:GSM8K", dataset=one)) == len(env("math:GSM8K", dataset=str(tmp_path / "one"))) == 5
    for given in (both, str(tmp_path / "both")):
        assert _prompts(env("math:GSM8K", dataset=given, split="test")) == ["What is 4?"]
        with pytest.raises(InvalidOption, match=r"split: must be given: there are several splits.*train, test"):
            env("math:GSM8K", dataset=given)


def test_order_and_number(env: Env) -> None:
    assert _prompts(env("math:GSM8K", dataset=ROWS, size=2)) == ["What is 0?", "What is 1?"]
    order = shuffled(5, 3)
    assert sorted(order) == list(range(5))
    assert _prompts(env("math:GSM8K", dataset=ROWS, shuffle=3, size=3)) == [f"What is {i}?" for i in order[:3]]


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_shuffle_is_the_upstreams(seed: int) -> None:
    datasets = pytest.importorskip("datasets")
    given = datasets.Dataset.from_list([{"i": i} for i in range(100)])
    assert given.shuffle(seed=seed)["i"][:] == shuffled(100, seed)


def test_columns(env: Env, rows_folder: Path) -> None:
    aime = env(
        "eval:AIME24",
        dataset=str(rows_folder / "aime_1983_2024_train.jsonl"),
        question_key="Question",
        answer_key="Answer",
    )
    assert _prompts(aime)[0] == "Find $3\\cdot 20$."
    with pytest.raises(
        InvalidOption, match=r"question_key: is no column of this data set.*valid: problem, answer"
    ):
        env("math:GSM8K", dataset=ROWS, question_key="question")


def test_mathematics_of_the_shared_rows(env: Env, rows_folder: Path) -> None:
    maths = env("eval:MATH500", dataset=str(rows_folder / "math_500_test.jsonl"))
    answers = ["\\frac{3}{4}", "(x+2)^2", "-3,3", "(2, \\frac{\\pi}{2})", "Ann"]
    for index, answer in enumerate(answers):
        state, _ = maths.reset(options={"task_index": index})
        assert maths.step(state, Action(boxed(answer))).rewards.total == 1.0, answer
        assert maths.step(state, Action(boxed("99"))).rewards.total == 0.0


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "b.txt").write_text("", encoding="utf-8")
    for dataset, said in (
        (str(tmp_path / "a.jsonl"), r"cannot be read as \.jsonl"),
        (str(tmp_path / "b.txt"), "is no file of rows"),
        (str(tmp_path / "none.json"), "cannot be read"),
        (str(tmp_path), "is no saved data set"),
        (3, "cannot be read"),
        ([1, 2], "is no list of rows"),
    ):
        with pytest.raises(InvalidOption, match=f"dataset: {said}"):
            llenvs.make("gem/math:GSM8K", dataset=dataset)


def test_without_the_hub_the_way_round_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    import huggingface_hub.constants

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        UpstreamFailed, match=r"loading axon-rl/GSM-8k from the Hugging Face hub.*dataset=\[\.\.\.\]"
    ):
        llenvs.make("gem/math:GSM8K")
    assert not datasets.are_progress_bars_disabled()


def test_images(env: Env, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (3, 2), (255, 0, 0))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    png = buffer.getvalue()
    (tmp_path / "a.png").write_bytes(png)
    given = [image, png, {"bytes": png, "path": None}, {"bytes": None, "path": str(tmp_path / "a.png")}]
    rows = [{"problem": "What colour?", "images": given, "answer": "red"}]
    for options in ({}, {"tool_types": ["python"]}):
        visual = env("math:Geometry3K", dataset=rows, **options)
        state, _ = visual.reset()
        assert visual.spec.supports_images
        assert [each.media_type for each in state.observation.images] == ["image/png"] * 4
        assert {each.data for each in state.observation.images} == {png}
        assert visual.step(state, Action(boxed("red"))).rewards["reward"].reward == 1.0
    with pytest.raises(InvalidOption, match="images: is no image"):
        env("math:Geometry3K", dataset=[{"problem": "?", "images": [b"text"], "answer": "1"}])


def test_images_of_a_data_set(env: Env) -> None:
    datasets = pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image").new("RGB", (3, 2), (0, 0, 255))
    features = datasets.Features(
        {
            "problem": datasets.Value("string"),
            "answer": datasets.Value("string"),
            "images": datasets.Sequence(datasets.Image()),
        }
    )
    rows = [{"problem": "What colour?", "answer": "blue", "images": [image]}]
    visual = env("math:Geometry3K", dataset=datasets.Dataset.from_list(rows, features=features))
    (shown,) = visual.reset()[0].observation.images
    assert shown.data is not None
    assert shown.data.startswith(b"\x89PNG")
