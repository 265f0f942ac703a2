"""The scorer `math`: math-verify's verdicts, from any thread, within its time."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from llenvs_huggingface.scoring.math import MathScorer, quick_verdict
from llenvs_huggingface.scoring.verifiers import VERIFIERS


@pytest.fixture
def scorer() -> Iterator[MathScorer]:
    one = MathScorer()
    yield one
    one.close()


RIGHT = [
    ("(x+2)^2", "x^2+4x+4"),
    ("3,-3", "-3,3"),
    ("(2,\\tfrac{\\pi}{2})", "\\left( 2, \\frac{\\pi}{2} \\right)"),
    ("1,000", "1000"),
    ("42 apples", "42"),
    ("x=5", "5"),
    ("2\\sqrt{3}", "\\sqrt{12}"),
    ("<answer>3/4</answer>", "\\frac{3}{4}"),
    ("\\boxed{5} or \\boxed{6}", "6"),
    ("0.333333", "\\frac{1}{3}"),
    ("28\\%", "0.28"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}"),
    ("[2, 5)", "[2,5)"),
    ("90^\\circ", "90"),
    ("\\text{ann}", "\\text{Ann}"),
    ("Thus the value is $\\frac{6}{8}$.", "\\frac{3}{4}"),
    ("so that she needs 12 of them", "12"),
    ("It costs $5 each, so they pay $15", "15"),
    ("We find that \\(x = 7\\) and we are done.", "7"),
]
WRONG = [
    ("\\pi", "3.14159"),
    ("(x-2)^2", "x^2+4x+4"),
    ("2x", "2"),
    ("-0.3333", "-\\frac{1}{3}"),
    ("Bo", "\\text{Ann}"),
    ("25\\sqrt{2}", "5\\sqrt{2}"),
    ("(2,5)", "[2,5)"),
    ("", ""),
    ("\\boxed{}", "5"),
    ("5 or 6", "6"),
    ("Thus the value is $\\frac{4}{3}$.", "\\frac{3}{4}"),
    ("so that she needs 12 of them", "x+12"),
    ("that cannot be said", "\\frac{3}{4}"),
]


@pytest.mark.parametrize(("answer", "expected"), RIGHT)
def test_right(scorer: MathScorer, answer: str, expected: str) -> None:
    assert scorer.score(answer, expected) == (1.0, None, None)


@pytest.mark.parametrize(("answer", "expected"), WRONG)
def test_wrong(scorer: MathScorer, answer: str, expected: str) -> None:
    assert scorer.score(answer, expected) == (0.0, None, None)


def test_the_fast_path_says_what_math_verify_says() -> None:
    """What is decided without math-verify, beside its own verdict in this process's main thread."""
    from math_verify import parse, verify

    rng = random.Random(0)
    values = [0, 1, -1, 2, 7, 12, 100, 1234, -345, 0.5, 0.25, 1.75, 3.125, -0.2, 12.5]
    spellings = [
        lambda v: f"{v}",
        lambda v: f"{v:,}",
        lambda v: f"\\frac{{{int(v * 8)}}}{{8}}",
        lambda v: f"{float(v)}",
        lambda v: f"{v}\\text{{ cm}}",
        lambda v: f"{v}^\\circ",
    ]
    decided = 0
    for _ in range(200):
        pair = [rng.choice(values), rng.choice(values)] if rng.random() < 0.6 else [rng.choice(values)] * 2
        right, given = (rng.choice(spellings)(value) for value in pair)
        verdict = quick_verdict(given, right)
        if verdict is None:
            continue
        decided += 1
        theirs = verify(parse(f"${right}$"), parse(f"${given}$"))
        assert verdict == theirs, (given, right)
    assert decided > 150


def test_threads_score_like_the_main_thread_and_leave_signals_alone(scorer: MathScorer) -> None:
    cases = [*RIGHT, *WRONG] * 2
    before = signal.getsignal(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 3600)
    try:
        with ThreadPoolExecutor(8) as threads:
            values = list(threads.map(lambda case: scorer.score(*case).value, cases))
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 3000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert signal.getsignal(signal.SIGALRM) is before
    assert values == ([1.0] * len(RIGHT) + [0.0] * len(WRONG)) * 2


HOSTILE = [
    "9^{9^{9^9}}",
    "1000000!",
    "x^{10^{10^{10}}}+1",
    "(" * 3000,
    "\\sqrt{" * 450 + "2" + "}" * 450,
    "\\prod_{n=1}^{10^9} n",
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_a_hostile_answer_ends_at_the_limit_and_the_worker_goes_on(answer: str) -> None:
    scorer = MathScorer(time_limit=0.3)
    assert scorer.score("x+x", "2x").value == 1.0
    workers = VERIFIERS.pids
    score = scorer.score(answer, "x^2+1")
    assert score.value == 0.0
    assert score.error in (None, "comparing took longer than 0.3 s") or "math-verify failed" in score.error
    assert VERIFIERS.pids == workers
    scorer.close()


@pytest.mark.parametrize("answer", ["9" * 1_000_000, "\\frac{" * 50_000, "{" * 1_000_000, "\\boxed{" * 100_000])
def test_a_long_answer_is_not_read(scorer: MathScorer, answer: str) -> None:
    score = scorer.score(answer, "7")
    assert score.value == 0.0
    assert score.error == f"not compared: the answer has {len(answer):,} characters"


def test_a_killed_worker_is_replaced(scorer: MathScorer) -> None:
    assert scorer.score("x+x", "2x").value == 1.0
    for pid in VERIFIERS.pids:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert scorer.score("x+x", "2x").value == 1.0


def test_a_comparison_cannot_touch_the_machine(scorer: MathScorer, tmp_path: object) -> None:
    target = f"{tmp_path}/created"
    for answer in (f"__import__('os').system('touch {target}')", f"open('{target}','w')", "\\input{/etc/passwd}"):
        assert scorer.score(answer, "x+1").value == 0.0
    assert not os.path.exists(target)


def test_the_workers_end_with_their_process() -> None:
    code = (
        "from llenvs_huggingface.scoring.math import MathScorer\n"
        "from llenvs_huggingface.scoring.verifiers import VERIFIERS\n"
        "s = MathScorer(); print(s.score('x+x', '2x').value, *VERIFIERS.pids, flush=True)\n"
        "s.close(); print(len(VERIFIERS.pids))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, last = done.stdout.splitlines()
    value, pid = first.split()
    assert (value, last, done.stderr) == ("1.0", "0", "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_without_math_verify_the_install_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from llenvs.core.errors import NotInstalled

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "math_verify" else find(name))
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[huggingface\]"'):
        MathScorer()


def test_many_threads_share_few_workers(scorer: MathScorer) -> None:
    seen: set[int] = set()

    def work() -> None:
        assert scorer.score("y+y", "2y").value == 1.0
        seen.update(VERIFIERS.pids)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(seen) <= 4
