"""Local files of all formats, directories, lists; what is wrong with them is said."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_layout import write_snapshot

import llenvs
from llenvs.core.errors import InvalidOption, UpstreamFailed

ROWS = [{"question": f"What is {i}+1?", "answer": str(i + 1), "level": i} for i in range(4)]


def prompts(**options: Any) -> list[str]:
    with llenvs.make("huggingface/dataset", **options) as env:
        return [env.reset(options={"task_index": i})[0].observation.prompt for i in range(len(env))]


EXPECTED = [row["question"] for row in ROWS]


def jsonl(path: Path) -> None:
    path.write_text("\n".join(map(json.dumps, ROWS)))


def dataset() -> Any:
    import datasets

    return datasets.Dataset.from_list(ROWS)


def gz(path: Path) -> None:
    with gzip.open(path, "wt") as file:
        file.write("\n".join(map(json.dumps, ROWS)))


WRITERS: dict[str, Callable[[Path], Any]] = {
    "rows.jsonl": jsonl,
    "rows.jsonl.gz": gz,
    "rows.json": lambda path: path.write_text(json.dumps(ROWS)),
    "rows.csv": lambda path: dataset().to_csv(path),
    "rows.tsv": lambda path: dataset().to_csv(path, sep="\t"),
    "rows.parquet": lambda path: dataset().to_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_files(name: str, tmp_path: Path, no_network: list[str]) -> None:
    WRITERS[name](tmp_path / name)
    assert prompts(data_files=str(tmp_path / name)) == EXPECTED
    assert prompts(data_files={"dev": str(tmp_path / name)}, split="dev[:2]") == EXPECTED[:2]
    assert prompts(data_dir=str(tmp_path / name)) == EXPECTED
    assert no_network == []


def test_arrow_and_what_save_to_disk_wrote(tmp_path: Path) -> None:
    import datasets

    dataset().save_to_disk(tmp_path / "saved")
    assert prompts(data_dir=str(tmp_path / "saved")) == EXPECTED
    (arrow,) = (tmp_path / "saved").glob("*.arrow")
    assert prompts(data_files=str(arrow)) == EXPECTED
    datasets.DatasetDict({"train": dataset(), "test": dataset().select([2])}).save_to_disk(tmp_path / "both")
    assert prompts(data_dir=str(tmp_path / "both")) == [EXPECTED[2]]
    assert prompts(data_dir=str(tmp_path / "both"), split="train") == EXPECTED
    with pytest.raises(InvalidOption, match=r"split: both has no such split, got 'dev'; valid: train, test"):
        prompts(data_dir=str(tmp_path / "both"), split="dev")


def test_several_files_a_pattern_and_a_key(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"part-{i}.jsonl").write_text("\n".join(map(json.dumps, ROWS[2 * i : 2 * i + 2])))
    assert prompts(data_files=str(tmp_path / "part-*.jsonl")) == EXPECTED
    assert prompts(data_files=[str(tmp_path / "part-1.jsonl"), str(tmp_path / "part-0.jsonl")])[0] == EXPECTED[2]
    (tmp_path / "nested.json").write_text(json.dumps({"version": 1, "rows": ROWS}))
    assert prompts(data_files=str(tmp_path / "nested.json"), field="rows") == EXPECTED


def test_directories(tmp_path: Path) -> None:
    (tmp_path / "plain" / "data").mkdir(parents=True)
    dataset().to_parquet(tmp_path / "plain" / "data" / "train-00000-of-00001.parquet")
    assert prompts(data_dir=str(tmp_path / "plain")) == EXPECTED
    write_snapshot(tmp_path / "clone", {"main": {"train": ROWS, "test": ROWS[:1]}, "other": {"test": ROWS[1:2]}})
    assert prompts(data_dir=str(tmp_path / "clone"), subset="main") == EXPECTED[:1]
    assert prompts(data_dir=str(tmp_path / "clone"), subset=["other", "main"], split="test") == EXPECTED[1::-1]


def test_directories_of_one_name_and_changed_ones_are_told_apart(tmp_path: Path) -> None:
    for i in range(2):
        write_snapshot(tmp_path / str(i) / "same", {"main": {"test": ROWS[i : i + 1]}})
        assert prompts(data_dir=str(tmp_path / str(i) / "same")) == [EXPECTED[i]]
    write_snapshot(tmp_path / "0" / "same", {"main": {"test": ROWS[2:4]}})
    assert prompts(data_dir=str(tmp_path / "0" / "same")) == EXPECTED[2:4]


def test_a_preset_takes_what_a_directory_has(tmp_path: Path, rows: Callable[[str], list[dict[str, Any]]]) -> None:
    """Neither its usual subset nor its usual split need to be there."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.jsonl").write_text("\n".join(map(json.dumps, rows("gsm8k_main_train"))))
    env = llenvs.make("huggingface/gsm8k", data_dir=str(tmp_path / "mine"))
    assert len(env) == 2
    assert env.spec.metadata["split"] == "train"
    with pytest.raises(InvalidOption, match=r"split: mine has no such split, got 'test'; valid: train"):
        llenvs.make("huggingface/gsm8k", data_dir=str(tmp_path / "mine"), split="test")


def test_a_list_of_dicts_needs_no_library() -> None:
    assert prompts(data=ROWS) == EXPECTED
    assert prompts(data=[{"problem": "1+1", "target": 2}, {"problem": "1+2", "target": 3, "extra": None}]) == [
        "1+1",
        "1+2",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "data: huggingface/dataset needs data, data_files or data_dir"),
        ({"data": []}, "data: must be a list of dicts that is not empty"),
        ({"data": ["a"]}, r"data.0: must be a mapping"),
        ({"data": ROWS, "data_dir": "x"}, "data_dir: does not go with data"),
        ({"data": ROWS, "revision": "x"}, "revision: is for the hub"),
        ({"data": ROWS, "split": "test"}, "split: does not go with data"),
        ({"data": ROWS, "field": "x"}, "field: is for JSON files"),
        ({"data_files": "no/such.jsonl"}, "data_files: there is no such file"),
        ({"data_files": "."}, "data_files: is a directory: give it as data_dir"),
        ({"data_files": __file__}, r"data_files: has an unknown format.*valid: .jsonl, .json"),
        ({"data_files": {}}, "data_files: names no file"),
        ({"data_dir": "no/such"}, "data_dir: there is no such directory"),
        ({"data": ROWS, "size": 0}, "size: "),
        ({"data": ROWS, "question_column": "qestion"}, "question_column: .*did you mean 'question'"),
        ({"data": [{"a": 1}]}, "question_column: must be given.*valid: a"),
        ({"data": ROWS, "answer_column": "level.x"}, "it lacks 'level.x'"),
        ({"data": ROWS, "image_column": "picture"}, "image_column: the data set has no such column"),
    ],
)
def test_what_is_wrong_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidOption, UpstreamFailed), match=message):
        llenvs.make("huggingface/dataset", **options)


def test_a_broken_file_is_an_error_with_what_the_reader_said(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"question": "a", "answer"')
    with pytest.raises(UpstreamFailed, match=r"broken\.jsonl.*loading the data"):
        prompts(data_files=str(tmp_path / "broken.jsonl"))
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises((UpstreamFailed, InvalidOption), match=r"empty\.jsonl|no rows"):
        prompts(data_files=str(tmp_path / "empty.jsonl"))


def test_the_columns_of_a_preset_are_checked(data: Path) -> None:
    with pytest.raises(
        InvalidOption, match=r"question_column: the data set has no such column.*'problem'.*question"
    ):
        llenvs.make("huggingface/math_500", data_files=str(data / "gsm8k_main_test.jsonl"))
    with pytest.raises(InvalidOption, match=r"no such column.*'Question'"):
        llenvs.make("huggingface/gpqa_diamond", data_files=str(data / "gsm8k_main_test.jsonl"))
    env = llenvs.make(
        "huggingface/math_500", data_files=str(data / "gsm8k_main_test.jsonl"), question_column="question"
    )
    assert len(env) == 5


def test_names() -> None:
    from llenvs.core.errors import UnknownEnvironment, UnknownOption

    with pytest.raises(UnknownEnvironment, match="did you mean 'gsm8k'"):
        llenvs.make("huggingface/gsm8")
    with pytest.raises(UnknownOption, match="question_column"):
        llenvs.make("huggingface/dataset", data=ROWS, question_colum="a")


def test_a_read_only_cache_does_no_harm(tmp_path: Path) -> None:
    """As root every folder can be written, so the cache is one whose parent is a file."""
    import subprocess
    import sys

    jsonl(tmp_path / "rows.jsonl")
    (tmp_path / "file").write_text("")
    code = (
        "import os, llenvs\n"
        f"env = llenvs.make('huggingface/dataset', data_files={str(tmp_path / 'rows.jsonl')!r})\n"
        "print(len(env))\n"
    )
    import os

    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "file" / "cache"), "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "4\n", done.stderr[-500:]
    assert done.stderr == ""
