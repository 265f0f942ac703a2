"""Nothing that a model or a client writes is executed where it is graded, and nothing hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gem_play import boxed

from llenvs import Action, Environment
from llenvs.core.errors import InvalidAction, UpstreamFailed
from llenvs.core.simulator import EngineProcess
from llenvs_gem.guard import Refused, arithmetic, check_code, literal
from llenvs_gem.workers import WORKERS, Workers

Env = Callable[..., Environment[Any]]
ATTACKS = (
    "__import__('os').system('touch {mark}')",
    "open('{mark}', 'w')",
    "[].__class__.__base__.__subclasses__()",
    'eval(\'open("{mark}", "w")\')',
    "sympify(\"open('{mark}', 'w')\")",
    "(lambda: open('{mark}', 'w'))()",
    "exec(\"open('{mark}', 'w')\")",
)
EXECUTING = (
    *("countdown", "puzzle24", "polynomial_multiplication", "simple_integration", "intermediate_integration"),
    *("n_queens", "string_insertion", "spiral_matrix", "binary_matrix", "number_sorting"),
)


def test_answers_are_not_executed(env: Env, tmp_path: Path) -> None:
    mark = tmp_path / "pwned"
    maths = env("math:Math12K", dataset=[{"problem": "?", "answer": "1"}])
    state, _ = maths.reset()
    environments = [(maths, state)]
    for name in EXECUTING:
        reasoning = env(f"rg:{name}")
        environments.append((reasoning, reasoning.reset(options={"task_index": 0})[0]))
    for each, at in environments:
        for attack in ATTACKS:
            result = each.step(at, Action(boxed(attack.format(mark=mark))))
            assert result.rewards["success"].reward == 0.0
            assert not mark.exists()


@pytest.mark.parametrize("wall", ["guard.install()", "confinement.confine()"])
def test_each_wall_alone_stops_them(tmp_path: Path, wall: str) -> None:
    mark = tmp_path / "pwned"
    program = (
        "import json, os, sys, warnings; warnings.simplefilter('ignore')\n"
        "import reasoning_gym\n"
        "from llenvs.core.simulator import confinement\nfrom llenvs_gem import guard\n"
        "names, attacks, mark = json.loads(sys.argv[1])\n"
        "sets = [reasoning_gym.create_dataset(name, size=1, seed=1) for name in names]\n"
        "entries = [data[0] for data in sets]\n"
        "def attacked():\n"
        "    for data, entry in zip(sets, entries):\n"
        "        for attack in attacks:\n"
        "            try:\n"
        "                data.score_answer(attack, entry)\n"
        "            except Exception:\n"
        "                pass\n"
        "    return os.path.exists(mark)\n"
        "before = attacked(); os.remove(mark)\n"
        f"{wall}\n"
        "print(before, attacked())"
    )
    tried = json.dumps([EXECUTING, [attack.format(mark=mark) for attack in ATTACKS], str(mark)])
    done = subprocess.run([sys.executable, "-c", program, tried], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "True False"


def test_an_items_text_is_not_executed(env: Env, tmp_path: Path) -> None:
    """A state may come from a client; bitwise_arithmetic evaluates its item."""
    mark = tmp_path / "pwned"
    bits = env("rg:bitwise_arithmetic")
    state, _ = bits.reset(options={"task_index": 0})
    entry = state.hidden["truth"]
    entry = {**entry, "metadata": {**entry["metadata"], "problem": f"open('{mark}', 'w')"}}
    hostile = type(state)(state.observation, {**state.hidden, "truth": entry}, state.metadata)
    assert bits.step(hostile, Action(boxed("0x1"))).rewards["reward"].reward == 0.0
    assert not mark.exists()


@pytest.mark.parametrize(
    "code",
    [
        "Symbol('x')**2 + sin(Symbol('x')*pi)/Integer(3)",
        "Function('f')(Symbol('x'))",
        "Float('1.5') <= oo",
        "(Integer(1), Rational('1', '3'))",
    ],
)
def test_expressions_pass(code: str) -> None:
    check_code(code)


@pytest.mark.parametrize(
    "code",
    [
        "open('x')",
        "Symbol('x').func",
        "sympify('1')",
        "lambdify(Symbol('x'), 'y')",
        "[i for i in oo]",
        "'text'",
        "test()",
        "Function('f')('x')",
        "(lambda: 1)()",
        "x[0]",
        "f'{x}'",
    ],
)
def test_other_code_does_not(code: str) -> None:
    with pytest.raises(Refused):
        check_code(code)


def test_literals_and_sums() -> None:
    assert literal("[['a', 1], (2.5, None)]") == [["a", 1], (2.5, None)]
    assert arithmetic("((0x1f << 3) ^ 7) - -(2 * 5 | 1)") == 266
    for text in ("f()", "[" * 3000, "x" * 30_000, "1 << 1000000", "a + 1", "1.5"):
        with pytest.raises(Refused):
            arithmetic(text)
    for text in ("f()", "[" * 3000, "__import__", 3):
        with pytest.raises(Refused):
            literal(text)


def test_an_answer_that_takes_too_long_is_wrong_and_the_next_is_graded(env: Env) -> None:
    rows = [{"problem": "?", "answer": "x+1"}]
    hurried, patient = env("math:Math12K", dataset=rows, time_limit=0.0005), env("math:Math12K", dataset=rows)
    state, _ = patient.reset()
    answer = Action(boxed("\\frac{x^2+2x+1}{x+1}"))
    assert patient.step(state, answer).rewards.total == 1.0
    signal = hurried.step(state, answer).rewards["reward"]
    assert (signal.reward, signal.metadata) == (0.0, {"error": "not graded: it took longer than 0.0005 s"})
    assert patient.step(state, answer).rewards.total == 1.0


def test_a_worker_that_dies_is_replaced(env: Env) -> None:
    maths = env("math:Math12K", dataset=[{"problem": "?", "answer": "7"}])
    state, _ = maths.reset()
    assert maths.step(state, Action(boxed("7"))).rewards.total == 1.0
    for pid in WORKERS.pids:
        os.kill(pid, 9)
    assert maths.step(state, Action(boxed("7"))).rewards.total == 1.0


def test_workers_that_died_idle_cost_no_answer_its_reward() -> None:
    workers = Workers(most=2)
    for _ in range(2):
        worker = EngineProcess("collections:OrderedDict", {}, name="gem/kit")  # starts sooner than one that grades
        workers._idle.append(worker)
        os.kill(worker.pid, 9)
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    request = {"do": "grade", "answer": "7", "truths": ["7"]}
    reply, _ = workers.request(request, limit=60, doing="grading", environment="gem/kit")
    workers.close()
    assert reply == {"correct": True}


def test_grading_from_threads_in_and_out_of_the_main_one(env: Env) -> None:
    maths = env("math:Math12K", dataset=[{"problem": "?", "answer": "x+1"}])
    state, _ = maths.reset()
    answers = ["x+1", "1+x", "x", "\\frac{2x+2}{2}"] * 4
    with ThreadPoolExecutor(4) as pool:
        graded = list(pool.map(lambda a: maths.step(state, Action(boxed(a))).rewards.total, answers))
    assert graded == [1.0, 1.0, 0.0, 1.0] * 4


def test_a_state_of_another_environment_is_refused(env: Env) -> None:
    rows = [{"problem": "?", "answer": "1"}]
    one, other = env("math:Math12K", dataset=rows), env("math:GSM8K", dataset=rows)
    state, _ = one.reset()
    with pytest.raises(InvalidAction, match=r"gem/math:GSM8K: this state belongs to gem/math:Math12K"):
        other.step(state, Action(boxed("1")))


def test_an_answer_that_is_none_of_the_kinds_is_said(env: Env) -> None:
    maths = env("math:Math12K", dataset=[{"problem": "?", "answer": {"a": 1}}])
    with pytest.raises(UpstreamFailed, match=r"reading item 0: the answer must be a text, a number or a list"):
        maths.reset()


def test_unclosed_tags_do_not_hang(env: Env) -> None:
    """The upstream's search takes minutes for them, in the process of the caller."""
    questions = env("qa:HotpotQA", dataset=[{"problem": "?", "answer": "a"}])
    state, _ = questions.reset()
    assert questions.step(state, Action("<answer>" * 50_000)).rewards.total == 0.0
