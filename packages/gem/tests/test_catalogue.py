"""The tables of this package beside the upstream's registry, and the names for its ids."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import llenvs
from llenvs.core.errors import InvalidOption, UnknownEnvironment, UnknownOption, UpstreamFailed
from llenvs.core.registry import environment_registry
from llenvs_gem.adapter import ADAPTER
from llenvs_gem.catalogue import COMPOSITE, ENTRIES, UPSTREAM_RELEASE, Kind, find
from llenvs_gem.upstream import module, version


def test_the_ids_are_the_upstreams() -> None:
    module("gem.envs")
    registry = module("gem.envs.registration").ENV_REGISTRY
    assert version() == UPSTREAM_RELEASE
    assert set(ENTRIES) == set(registry)
    assert len(ENTRIES) == 172
    assert Counter(info.category for info in ADAPTER.list_environments()) == {
        "rg": 104, "game": 37, "eval": 14, "math": 7, "logic": 5, "code": 3, "qa": 2,
    }  # fmt: skip
    for id, entry in ENTRIES.items():
        settings = dict(registry[id].kwargs)
        if entry.kind is Kind.GAME:
            ours = dict(entry.settings)
            settings.pop("duplicate_numbers", None)  # the constructor's default
            settings.pop("room_size", None)  # no argument of the constructor
            assert ours == settings, id
        elif entry.kind is not Kind.REASONING:
            answer = settings.get("answer_key") or settings.get("test_key")
            assert entry.settings["dataset"] == settings["dataset_name"], id
            assert entry.settings["split"] == settings.get("split"), id
            assert entry.settings["question_key"] == settings["question_key"], id
            assert entry.settings["answer_key"] == answer, id
            kinds = {"math_env": Kind.MATH, "math_visual_env": Kind.MATH, "code_env": Kind.CODE, "qa_env": Kind.QA}
            kind = kinds[registry[id].entry_point.split(":")[0].rpartition(".")[2]]
            assert entry.kind in (kind, Kind.LOGIC if settings.get("extract_boxed") else kind), id


def test_the_list_says_what_each_needs() -> None:
    needs = Counter(info.metadata["needs"] for info in ADAPTER.list_environments())
    assert needs == {"works offline": 129, "needs corpus": 9, "needs hub": 31, "broken upstream": 3}


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("game:GuessTheNumber-v0", "game:GuessTheNumber-v0-easy"),
        ("game:TowerOfHanoi-v0", "game:TowerofHanoi-v0-easy"),
        ("game:TowerOfHanoi-v0-hard", "game:TowerofHanoi-v0-hard"),
        ("math:MATH500", "eval:MATH500"),
        ("math:AIME24", "eval:AIME24"),
        ("qa:TriviaQA", "eval:TriviaQA"),
        ("qa:HotpotQA", "qa:HotpotQA"),
        ("code:CodeContest", "code:CodeContest"),
        ("reasoning_gym:leg_counting", "rg:leg_counting"),
    ],
)
def test_other_names(name: str, id: str) -> None:
    assert find(name).id == id
    assert environment_registry.describe(f"gem/{name}").info.name == id


def test_unknown_names_and_options_have_suggestions() -> None:
    with pytest.raises(UnknownEnvironment, match="did you mean 'game:Sudoku-v0-easy'"):
        llenvs.make("gem/game:Sudoko-v0-easy")
    with pytest.raises(UnknownOption, match="did you mean 'seed'"):
        llenvs.make("gem/game:Sudoku-v0-easy", sed=1)
    with pytest.raises(InvalidOption, match=r"gem/game:Sudoku-v0-easy: prompt.*'event', 'suffix' or 'full'"):
        llenvs.make("gem/game:Sudoku-v0-easy", prompt="all")


def test_what_is_broken_upstream() -> None:
    with pytest.raises(UpstreamFailed, match=r"it names no parts; reasoning_gym/composite"):
        llenvs.make(f"gem/{COMPOSITE}")
    for id in ("game:FifteenPuzzle-v0-random", "game:Crosswords-v0-random"):
        with pytest.raises((TypeError, ValueError)):
            module("gem").make(id)
        with llenvs.make(f"gem/{id}") as mended:
            rules = {mended.reset(options={"task_index": i})[0].observation.prompt[:50] for i in range(8)}
            assert all("playing" in text for text in rules)


def test_importing_the_adapter_imports_nothing_of_the_upstream() -> None:
    code = (
        "import sys, llenvs_gem\n"
        "infos = llenvs_gem.ADAPTER.list_environments()\n"
        "llenvs_gem.ADAPTER.describe('math:GSM8K')\n"
        "upstream = {'gem', 'reasoning_gym', 'datasets', 'numpy', 'nltk', 'sympy'}\n"
        "print(len(infos), sorted(upstream & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "172 []\n"


def test_the_upstream_leaves_no_trace_in_the_process(tmp_path: Path) -> None:
    code = (
        "import logging, random, os, llenvs\n"
        "random.seed(5); state = random.getstate()\n"
        "env = llenvs.make('gem/game:Game2048-v0-easy'); s, _ = env.reset()\n"
        "env.step(s, llenvs.Action('\\\\boxed{left}'))\n"
        "print(logging.getLogger().handlers, logging.getLogger().level, random.getstate() == state, os.listdir())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[] 30 True []\n", "")
