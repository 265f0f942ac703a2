"""The route through the network, against a hub in small on this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hub_layout import COMMIT
from hub_server import serving

SCRIPT = """
import json, sys, llenvs
for name, options in json.loads(sys.argv[1]):
    try:
        env = llenvs.make(f"huggingface/{name}", **options)
        hidden = env.reset(options={"task_index": 1})[0].hidden
        print(len(env), hidden["expected_answer"], hidden["subset"], hidden["split"], hidden["revision"])
    except llenvs.core.LLEnvsError as error:
        print(error)
"""


def run(home: Path, endpoint: str, work: list[tuple[str, dict[str, Any]]]) -> list[str]:
    environment = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", SCRIPT, json.dumps(work)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_data_set_is_downloaded_and_then_here(tmp_path: Path, gsm8k_cache: Path) -> None:
    (snapshot,) = gsm8k_cache.rglob(COMMIT)
    work: list[tuple[str, dict[str, Any]]] = [
        ("gsm8k", {}),
        ("openai/gsm8k", {"split": "train[:2]", "revision": "main"}),
        ("gsm8k", {"subset": "mian"}),
        ("gsm8k", {"revision": "v9"}),
        ("someone/else", {}),
    ]
    with serving("openai/gsm8k", snapshot) as (endpoint, _):
        test, train, subset, revision, unknown = run(tmp_path / "home", endpoint, work)
    assert test == f"5 2300 main test {COMMIT}"
    assert train == f"2 14 main train[:2] {COMMIT}"
    assert subset == "subset: openai/gsm8k has no such subset, got 'mian'; valid: main"
    assert revision == "revision: openai/gsm8k has no such revision, got 'v9'"
    assert "someone/else could not be loaded; tried: the hub, which has no such data set" in unknown
    assert run(tmp_path / "home", endpoint, [("gsm8k", {})]) == [test]  # the server is gone


def test_a_gated_data_set_says_how_to_get_in(
    tmp_path: Path, gsm8k_cache: Path, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    (snapshot,) = gsm8k_cache.rglob(COMMIT)
    with serving("Idavidrein/gpqa", snapshot, gated=True) as (endpoint, _):
        (said,) = run(tmp_path / "home", endpoint, [("gpqa_diamond", {})])
    assert "which asks for a login" in said
    assert "Accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa, then set HF_TOKEN" in said
