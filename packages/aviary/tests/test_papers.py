"""LAB-Bench and LFRQA as far as they go without papers and keys; skipped without their packages (650 MB)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from aviary_play import begin

from llenvs.core.errors import UpstreamFailed
from llenvs_aviary.environment import AviaryEnvironment

pytest.importorskip("aviary.envs.labbench", reason="needs llenvs-aviary[labbench]")
Make = Callable[..., AviaryEnvironment]


def test_every_name_says_what_it_needs(make: Make) -> None:
    # the hub is out of reach for tests, so each stops where its data would be loaded
    for name, data in (("labbench", "lab-bench"), ("figqa", "lab-bench"), ("tableqa2", "labbench2")):
        with pytest.raises(UpstreamFailed, match=rf"aviary/{name}: .*making its data set \(it needs .*{data}"):
            make(name)


def test_lfrqa_begins_without_keys(make: Make, tmp_path: Path) -> None:
    pytest.importorskip("aviary.envs.lfrqa", reason="needs llenvs-aviary[lfrqa]")
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "qid,question,answer,citation_numbers,faithful_answer_w_citation,gold_doc_ids\n"
        'q1,Why is the sky blue?,Because of scattering.,[1],Scattering [1].,"[1, 2]"\n'
        'q2,What is a bridge?,A way over.,[3],A way over [3].,"[3]"\n'
    )
    env = make("lfrqa", dataset_options={"data": str(rows), "pairwise_eval_llm": "a-judge"})
    assert len(env) == 2
    state = begin(env, 1)
    assert "What is a bridge?" in state.observation.prompt
    assert state.metadata.info["task_id"] == "q2"
    names = {tool.name for tool in state.observation.available_tools}
    assert names == {"reset", "gen_answer", "gather_evidence", "paper_search", "complete"}
    assert (env.spec.deterministic, env.stats.snapshots) == (False, 1)
    with pytest.raises(UpstreamFailed, match=r"it needs dataset_options with data"):
        make("lfrqa")


def test_options_of_questions_have_the_same_order_in_every_process() -> None:
    code = (
        "from llenvs_aviary.options import PaperOptions\n"
        "from llenvs_aviary.papers import PaperTasks\n"
        "from llenvs.core.errors import UpstreamFailed\n"
        "try: PaperTasks('litqa2', PaperOptions())\n"
        "except UpstreamFailed: pass\n"
        "from aviary.core import MultipleChoiceQuestion as Q\n"
        "options = list('abcdefgh')\n"
        "q = Q(question='Which?', options=options, ideal_answer='a', shuffle_seed=Q.SEED_USING_QUESTION)\n"
        "print(q.question_prompt)\n"
    )
    shown = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        ).stdout
        for seed in ("1", "2")
    ]
    assert shown[0] == shown[1]
    assert "A) " in shown[0]
