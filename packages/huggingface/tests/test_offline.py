"""Routes without a network: none is asked, nothing waits, and what was tried is said."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_layout import COMMIT, write_repository

import llenvs
from llenvs.core.errors import InvalidOption
from llenvs_huggingface.sources import DataUnavailable

Rows = Callable[[str], list[dict[str, Any]]]


def test_a_snapshot_of_the_hub_is_enough(gsm8k_cache: Path, no_network: list[str]) -> None:
    env = llenvs.make("huggingface/gsm8k", cache_dir=str(gsm8k_cache), offline=True)
    assert len(env) == 5
    state, _ = env.reset(options={"task_index": 0})
    assert state.observation.prompt.startswith("Mira packs 3 jars")
    where = {key: state.hidden[key] for key in ("dataset_name", "subset", "split", "revision", "row_index")}
    assert where == {
        "dataset_name": "openai/gsm8k",
        "subset": "main",
        "split": "test",
        "revision": COMMIT,
        "row_index": 0,
    }
    train = llenvs.make("huggingface/openai/gsm8k", cache_dir=str(gsm8k_cache), offline=True, split="train")
    assert len(train) == 2
    one = llenvs.make(
        "huggingface/gsm8k", cache_dir=str(gsm8k_cache), offline=True, split="test[1:3]", revision=COMMIT
    )
    assert len(one) == 2
    assert no_network == []


def test_plain_snapshots_are_read_as_datasets_reads_them(tmp_path: Path, data: Path, rows: Rows) -> None:
    from llenvs_huggingface.sources.local import load_directory
    from llenvs_huggingface.sources.plain import plain_table
    from llenvs_huggingface.sources.rows import Origin, TableRows

    for name in (
        "hotpot_qa_distractor_validation",
        "arc_challenge_test",
        "math_500_test",
        "truthful_qa_mc_validation",
    ):
        snapshot = write_repository(
            tmp_path / name, "own/data", {"main": {"test": rows(name), "dev": rows(name)[:1]}}
        )
        plain = plain_table(str(snapshot), None, None)
        assert plain is not None
        ours, theirs = TableRows(plain.table, Origin("x")), load_directory(str(snapshot), "main", "test")
        assert (plain.subset, plain.split, len(ours)) == ("main", "test", len(theirs))
        assert [ours.row(i) for i in range(len(ours))] == [theirs.row(i) for i in range(len(theirs))] == rows(name)
    assert plain_table(str(snapshot), "main", "test[:1]") is None  # left to datasets
    assert plain_table(str(snapshot), "other", "test") is None
    assert plain_table(str(data), None, None) is None


def test_the_first_prompt_of_a_plain_snapshot_needs_no_datasets(gsm8k_cache: Path) -> None:
    code = (
        "import sys, llenvs\n"
        f"env = llenvs.make('huggingface/gsm8k', cache_dir={str(gsm8k_cache)!r}, offline=True)\n"
        "env.step(env.reset(seed=0)[0], llenvs.Action('7'))\n"
        "print(len(env), [name for name in ('datasets', 'pandas', 'sympy') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("5 []\n", "")


def test_without_a_network_what_is_here_is_used_after_one_request(
    gsm8k_cache: Path, no_network: list[str]
) -> None:
    env = llenvs.make("huggingface/gsm8k", cache_dir=str(gsm8k_cache))
    assert len(env) == 5
    assert len(no_network) <= 2  # the library's own, once in a process, and ours


def test_what_is_nowhere_is_said_at_once(tmp_path: Path, no_network: list[str]) -> None:
    with pytest.raises(DataUnavailable) as caught:
        llenvs.make("huggingface/gsm8k", cache_dir=str(tmp_path), offline=True)
    said = str(caught.value)
    for words in ("openai/gsm8k", f"the hub cache {tmp_path}", "prepared copies in", "offline is set"):
        assert words in said
    assert "hf download --repo-type dataset openai/gsm8k" in said
    assert no_network == []
    with pytest.raises(DataUnavailable, match="the network") as caught:
        llenvs.make("huggingface/someone/nothing", cache_dir=str(tmp_path))
    assert len(caught.value.tried) == 3
    assert len(no_network) <= 2


def test_an_unknown_subset_or_split_names_those_there(gsm8k_cache: Path) -> None:
    def make(**options: Any) -> None:
        llenvs.make("huggingface/gsm8k", cache_dir=str(gsm8k_cache), offline=True, **options)

    with pytest.raises(InvalidOption, match=r"subset: .*no such subset, got 'mian'; valid: main"):
        make(subset="mian")
    with pytest.raises(InvalidOption, match=r"split: .*no such split, got 'dev'; valid: train, test"):
        make(split="dev")
    with pytest.raises(InvalidOption, match="split: "):
        make(split="test[1:2:3]")
    with pytest.raises(DataUnavailable, match="for revision v2"):
        make(revision="v2")


def test_the_subjects_of_math_are_one_data_set(tmp_path: Path, rows: Rows, no_network: list[str]) -> None:
    from llenvs_huggingface.presets.mathematics import HENDRYCKS_MATH

    row = rows("hendrycks_math_algebra_test")[0]
    configs = {
        subject: {"test": [{**row, "problem": f"{subject} {i}"} for i in range(2)]} for subject in HENDRYCKS_MATH
    }
    write_repository(tmp_path, "EleutherAI/hendrycks_math", configs)
    options = {"cache_dir": str(tmp_path), "offline": True}
    env = llenvs.make("huggingface/math", **options)
    prompts = [env.reset(options={"task_index": i})[0].observation.prompt for i in range(len(env))]
    assert prompts == [f"{subject} {i}" for subject in HENDRYCKS_MATH for i in range(2)]
    state, _ = env.reset(options={"task_index": 3})
    assert (state.hidden["subset"], state.hidden["row_index"]) == ("counting_and_probability", 1)
    assert len(llenvs.make("huggingface/math", subset=["geometry", "prealgebra"], **options)) == 4
    env.close()
    with pytest.raises(InvalidOption, match=r"subset: .*one must be given.*algebra"):
        llenvs.make("huggingface/dataset", data_dir=str(next((tmp_path).rglob(COMMIT))))
    assert no_network == []


SCRIPT = """
import json, socket, sys
def refuse(*args, **more):
    print("asked the network", args)
    raise OSError("blocked")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
import llenvs
for options in json.loads(sys.argv[1]):
    try:
        env = llenvs.make("huggingface/gsm8k", **options)
        state, _ = env.reset(options={"task_index": 1})
        print(state.observation.prompt, len(env), state.hidden["revision"])
    except llenvs.core.LLEnvsError as error:
        print(error)
"""


def run(home: Path, options: list[dict[str, Any]], **variables: str) -> list[str]:
    """What a fresh process says to each of `options`, a line each."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(options)],
        env={**os.environ, "HF_HOME": str(home), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


PROMPT = "A printer makes 1,150 pages a day. How many pages does it make in 2 days?"


def test_the_users_variables_count(gsm8k_cache: Path) -> None:
    assert run(gsm8k_cache.parent, [{}], HF_HUB_OFFLINE="1") == [f"{PROMPT} 5 {COMMIT}"]


def test_a_prepared_copy_is_enough(tmp_path: Path, gsm8k_cache: Path) -> None:
    """What an earlier `load_dataset` left: made by the library from the snapshot, put under the hub's name."""
    import datasets

    (snapshot,) = gsm8k_cache.rglob(COMMIT)
    builder = datasets.load_dataset_builder(str(snapshot), "main", cache_dir=str(tmp_path / "scratch"))
    builder.download_and_prepare()
    target = tmp_path / "home" / "datasets" / "openai___gsm8k" / "main" / "0.0.0" / COMMIT
    target.mkdir(parents=True)
    for split in ("train", "test"):
        (made,) = (tmp_path / "scratch").rglob(f"*-{split}.arrow")
        (target / f"gsm8k-{split}.arrow").write_bytes(made.read_bytes())
    info = (made.parent / "dataset_info.json").read_text()
    (target / "dataset_info.json").write_text(info.replace(builder.dataset_name, "gsm8k"))
    here, other_subset, other_commit = run(
        tmp_path / "home",
        [{"offline": True}, {"offline": True, "subset": "socratic"}, {"offline": True, "revision": "f" * 40}],
    )
    assert here == f"{PROMPT} 5 {COMMIT}"
    assert other_subset == "subset: openai/gsm8k is prepared here without it, got 'socratic'; valid: main"
    assert f"there is only commit {COMMIT}" in other_commit
