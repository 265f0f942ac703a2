"""Walks in our environments beside walks in the upstream's own: the same words, rewards and ends."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gem_play import random_move

from llenvs import Action, Environment, State
from llenvs_gem.catalogue import COMPOSITE, ENTRIES, Kind, Needs
from llenvs_gem.upstream import module

Env = Callable[..., Environment[Any]]
GAMES = [e.id for e in ENTRIES.values() if e.kind is Kind.GAME and e.needs is Needs.NOTHING]
WORD_GAMES = [e.id for e in ENTRIES.values() if e.needs is Needs.CORPUS]
SLOW = ("game:Sokoban-v0-hard", "game:Sokoban-v0-random")  # some of the upstream's boards take 38 s each
REASONING = [e.id.removeprefix("rg:") for e in ENTRIES.values() if e.kind is Kind.REASONING and e.id != COMPOSITE]


def test_what_works_offline() -> None:
    assert (len(GAMES), len(WORD_GAMES), len(REASONING)) == (26, 9, 103)


def _upstream(id: str) -> Any:
    module("gem.envs")
    return module("gem").make(id)


def _same_walks(ours: Environment[Any], id: str, episodes: int) -> None:
    upstream = _upstream(id)
    rng = random.Random(id)
    for episode in range(episodes):
        state, info = ours.reset(options={"task_index": episode})
        text, said = upstream.reset(seed=42 + episode)
        assert state.observation.prompt == text
        assert {key: info[key] for key in said} == said
        for _ in range(40):
            move = random_move(id, rng, nonsense=0.01)
            if "1" * 5000 in move:  # which some of the upstream's games cannot read
                continue
            chance = random.getstate()
            result = ours.step(state, Action(move))
            assert random.getstate() == chance
            text, reward, terminated, truncated, said = upstream.step(move)
            assert result.next_state.observation.prompt == text
            assert result.rewards["reward"].reward == reward
            assert (result.terminated, result.truncated) == (terminated, truncated)
            assert {key: result.info[key] for key in said} == said
            state = State.from_json(result.next_state.to_json())
            if result.done:
                break


@pytest.mark.parametrize("id", [id for id in GAMES if id not in SLOW])
def test_games(env: Env, id: str) -> None:
    _same_walks(env(id), id, episodes=4)


@pytest.mark.parametrize("id", WORD_GAMES)
def test_games_of_words(env: Env, id: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [words])
    monkeypatch.setattr(nltk, "download", lambda *args, **kwargs: True)  # would go to the network
    _same_walks(env(id, nltk_data=words), id, episodes=4)


def test_full_prompts_are_those_of_the_upstreams_wrapper(env: Env) -> None:
    wrapper = module("gem.wrappers.wrapper_factory").WRAPPER_FACTORY["concat"]
    for id in ("game:Sudoku-v0-easy", "game:Mastermind-v0-easy", "game:Game2048-v0-easy"):
        upstream, rng = wrapper(_upstream(id)), random.Random(1)
        ours = env(id, prompt="full")
        state, _ = ours.reset(options={"task_index": 0})
        assert state.observation.prompt == upstream.reset(seed=42)[0]
        for _ in range(8):
            move = random_move(id, rng, nonsense=0.0)
            result = ours.step(state, Action(move))
            assert result.next_state.observation.prompt == upstream.step(move)[0]
            if result.done:
                break
            state = result.next_state


@pytest.fixture(scope="module")
def reference() -> dict[str, list[dict[str, Any]]]:
    program = Path(__file__).with_name("upstream_reference.py")
    result = subprocess.run(
        [sys.executable, "-W", "ignore", program, *REASONING],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    items: dict[str, list[dict[str, Any]]] = json.loads(result.stdout)
    return items


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_gym(env: Env, name: str, reference: dict[str, list[dict[str, Any]]]) -> None:
    ours = env(f"rg:{name}")
    for index, expected in enumerate(reference[name]):
        state, _ = ours.reset(options={"task_index": index})
        assert state.observation.prompt == expected["question"]
        assert state.hidden["truth"]["answer"] == expected["answer"]
        state = State.from_json(state.to_json())
        for text, value in expected["rewards"]:
            signal = ours.step(state, Action(text)).rewards["reward"]
            if isinstance(value, str):  # the upstream's scorer raised this
                assert (signal.reward, value in signal.metadata["error"]) == (0.0, True)
            else:
                assert signal.reward == value, text


def test_maths(env: Env) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [
        *({"problem": f"{i}+{i}", "answer": str(2 * i)} for i in range(1, 6)),
        {"problem": "a half", "answer": "\\frac{1}{2}"},
        {"problem": "expand", "answer": "x^2+2x+1"},
        {"problem": "a set", "answer": "\\{1, 2, 3\\}"},
        {"problem": "an interval", "answer": "(-\\infty, 3]"},
        {"problem": "a word", "answer": "\\text{east}"},
    ]
    answers = [
        *(
            "\\boxed{4}",
            "\\boxed{4.0}",
            "\\boxed{\\frac{8}{2}}",
            "\\boxed{0.5}",
            "\\boxed{\\dfrac12}",
            "\\boxed{1/2}",
        ),
        *("\\boxed{(x+1)^2}", "\\boxed{\\{3,2,1\\}}", "\\boxed{(-\\infty,3]}", "\\boxed{east}", "\\boxed{}", "4"),
        *("\\boxed{2} and \\boxed{10}", "\\boxed{", "\\boxed{\\text{East}}", "\\boxed{50\\%}", "\\boxed{1{,}000}"),
    ]
    given = datasets.Dataset.from_list(rows)
    upstream = module("gem.envs.math_env").MathEnv(dataset=given, use_mp=False, seed=0)
    ours = env("math:Math12K", dataset=given, shuffle=0)
    for index in range(len(rows)):
        state, _ = ours.reset(options={"task_index": index})
        assert state.observation.prompt == upstream.reset(idx=index)[0]
        for answer in answers:
            assert ours.step(state, Action(answer)).rewards.total == upstream.step(answer)[1], answer


def test_questions(env: Env) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [
        {"problem": "Capital of France?", "answer": ["Paris", "the city of Paris"]},
        {"problem": "How many?", "answer": [42]},
        {"problem": "Who?", "answer": "A. N. Other"},
    ]
    texts = [f"<answer>{a}</answer>" for a in ("paris!", "The Paris", "42", "an other", "A N Other", "", "London")]
    given = datasets.Dataset.from_list([{**row, "answer": json.dumps(row["answer"])} for row in rows])
    upstream = module("gem.envs.qa_env").QaEnv(dataset=given, question_key="problem", seed=0)
    ours = env("qa:HotpotQA", dataset=rows, shuffle=0)
    for index in range(len(rows)):
        state, _ = ours.reset(options={"task_index": index})
        assert state.observation.prompt == upstream.reset()[0]
        upstream.answer = state.hidden["truth"]
        for text in texts:
            assert ours.step(state, Action(text)).rewards.total == upstream.step(text)[1], text


def test_code(env: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)  # where the upstream leaves its folders while it runs
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    tests = {"inputs": ["3\n", "4\n", "10\n"], "outputs": ["6\n", "8", "20"]}
    rows = [{"problem": "Double it.", "tests": json.dumps(tests)}]
    upstream = module("gem.envs.code_env").CodeEnv(
        dataset_name="taco", dataset=datasets.Dataset.from_list(rows), max_workers=2
    )
    ours = env("code:Taco8k", dataset=rows)
    state, _ = ours.reset()
    assert state.observation.prompt == upstream.reset()[0]
    for text in (
        "print(2 * int(input()))",
        "```python\nprint(2 * int(input()))\n```",
        "```\nn = int(input())\nprint('  ', n + n)\n```",
        "```python\nprint(6)\n```",
        "```python\n1 / 0\n```",
        "```python\nprint(1)\n```\n```py\nprint(int(input()) << 1)\n```",
    ):
        assert ours.step(state, Action(text)).rewards.total == upstream.step(text)[1], text
