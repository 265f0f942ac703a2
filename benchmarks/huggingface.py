"""Data sets: the first prompt without a network, 10,000 answers scored, hostile answers, and the upstream's
verdicts.

Needs ``llenvs-huggingface[math]``; makes its own data. Targets: the first prompt in under 2 s, import included;
10,000 GSM8K-style answers in under 5 s; no hostile answer beyond its limit; the same verdicts as math-verify where
that can read the answer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import timed, us

import llenvs
from llenvs import Action
from llenvs_huggingface.scoring.latex import bare_answer
from llenvs_huggingface.scoring.math import MathScorer, quick_verdict

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first_prompt(Path(folder), args.rounds)
    answers(args.answers)
    hostile()
    verdicts()


ALONE = """
import os, huggingface_hub, datasets
path = huggingface_hub.snapshot_download("openai/gsm8k", repo_type="dataset", local_files_only=True)
print(datasets.load_dataset(path, "main", split="test")[0]["question"])
"""
OURS = """
import llenvs
print(llenvs.make("huggingface/gsm8k").reset(options={"task_index": 0})[0].observation.prompt)
"""


def first_prompt(home: Path, rounds: int) -> None:
    """A fresh process with HF_HUB_OFFLINE=1 and a cache as the hub has it, sockets blocked; the least of the
    rounds.
    """
    write_cache(home / "hub")
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    blocked = "import socket\nsocket.socket.connect = socket.getaddrinfo = None\n"
    times: dict[str, list[float]] = {"upstream": [], "ours": []}
    for _ in range(rounds):
        for name, code in (("upstream", ALONE), ("ours", OURS)):
            command = [sys.executable, "-c", blocked + code]
            began = time.perf_counter()
            said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            times[name].append(time.perf_counter() - began)
            assert said.stdout == "What is 0+0?\n", said
    alone, ours = min(times["upstream"]), min(times["ours"])
    print(
        f"first prompt  offline, fresh process: ours {ours:.2f} s, the upstream alone {alone:.2f} s, "
        f"ratio {ours / alone:.2f}"
    )


def write_cache(cache: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    home = cache / "datasets--openai--gsm8k"
    snapshot = home / "snapshots" / COMMIT
    (snapshot / "main").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    rows = [{"question": f"What is {i}+{i}?", "answer": f"It is {2 * i}.\n#### {2 * i}"} for i in range(1319)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), snapshot / "main" / "test-00000-of-00001.parquet")
    card = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: main/test-*\n---\n"
    (snapshot / "README.md").write_text(card)


FORMS = (
    "#### {0}",
    "The answer is ${0}.",
    "so she has <answer>{0}</answer>",
    "\\boxed{{{0}}}",
    "That makes {0} apples.",
    "**{0}**",
)


def answers(count: int) -> None:
    """Responses of some 400 characters through `step`: extraction, scoring and the next state."""
    rng = random.Random(0)
    rows = [{"question": f"Task {i}?", "answer": f"Work.\n#### {i * 37:,}"} for i in range(1000)]
    for scoring in ("numeric", "math"):
        env = llenvs.make("huggingface/gsm8k", data=rows, scoring=scoring)
        states = [env.reset(options={"task_index": i})[0] for i in range(len(env))]
        work = [(states[i % 1000], Action(response(rng, i % 1000))) for i in range(count)]
        began = time.perf_counter()
        right = sum(env.step(state, action).rewards.total for state, action in work)
        seconds = time.perf_counter() - began
        print(f"answers       {count:,} GSM8K-style, {scoring}: {seconds:.2f} s, {right / count:.0%} right")
        env.close()
    try:
        from math_verify import parse, verify
    except ImportError:
        return
    logging.disable(logging.CRITICAL)
    pairs = [(str(i * 37), response(rng, i)) for i in range(300)]
    times = [timed(lambda g=g, a=a: verify(parse(f"${g}$"), parse(a))) for g, a in pairs]
    logging.disable(logging.NOTSET)
    print(
        f"              math-verify alone: {us(times)} an answer, so {sum(times) / 300 * count:.1f} s for as many"
    )


def response(rng: random.Random, task: int) -> str:
    value = task * 37 if rng.random() < 0.7 else task * 37 + rng.choice((1, -1, 10))
    work = " ".join(
        f"Step {i}: {rng.randint(2, 99)} * {rng.randint(2, 99)} = {rng.randint(4, 999)}." for i in range(12)
    )
    return f"{work}\n{rng.choice(FORMS).format(f'{value:,}' if rng.random() < 0.5 else value)}"


HOSTILE = {
    "9^{9^{9^9}}": "9^{9^{9^9}}",
    "1000000!": "1000000!",
    "1 MB of digits": "9" * 1_000_000,
    "20,000 numbers": ",".join(map(str, range(20_000))),
    "fractions in fractions": "\\frac{" * 300 + "1" + "}{2}" * 300,
    "roots in roots": "\\sqrt{" * 450 + "2" + "}" * 450,
    "3,000 brackets": "(" * 3000,
    "1 MB of brackets": "{" * 1_000_000,
    "a product to 10^9": "\\prod_{n=1}^{10^9} n",
}


def hostile(limit: float = 1.0) -> None:
    scorer = MathScorer(time_limit=limit)
    scorer.score("x+x", "2x")  # starts the worker
    for name, answer in HOSTILE.items():
        began = time.perf_counter()
        score = scorer.score(answer, "x^2+1")
        seconds = time.perf_counter() - began
        after = timed(lambda: scorer.score("y+y", "2y"))
        print(
            f"hostile       {name:24} {seconds:5.2f} s (limit {limit:g}), the next answer {after * 1e3:4.0f} ms "
            f"  {score.error}"
        )
    scorer.close()


FAMILIES = (
    ("\\frac{3}{4}", "0.75", "3/4", "\\dfrac34", "\\frac{6}{8}", "75\\%", "\\frac{4}{3}", "0.7500001", "0.76"),
    ("x^2+4x+4", "(x+2)^2", "4+4x+x^2", "(x+2)(x+2)", "x^2+4x+5", "y^2+4y+4"),
    ("-3,3", "3,-3", "\\{-3,3\\}", "3", "x=3,-3"),
    ("\\left( 2, \\frac{\\pi}{2} \\right)", "(2,\\frac{\\pi}{2})", "(2, \\pi/2)", "(\\frac{\\pi}{2},2)"),
    ("5\\sqrt{2}", "\\sqrt{50}", "5\\sqrt2", "25\\sqrt{2}", "\\frac{10}{\\sqrt{2}}", "7.07"),
    ("[2,5)", "[2, 5)", "(2,5)", "[2,5]"),
    ("\\pi", "3.14159", "\\frac{22}{7}"),
    ("1000", "1,000", "1{,}000", "10^3", "1000.0", "1001"),
    ("\\text{Ann}", "Ann", "\\text{ann}", "\\text{Bo}"),
    ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
    ("90^\\circ", "90", "90^{\\circ}", "91^\\circ"),
    ("2^{10}", "1024", "4^5", "2^{11}"),
    ("-\\frac{2}{3}", "\\frac{-2}{3}", "-2/3", "-0.666667", "-0.67", "\\frac{2}{3}"),
    ("y=2x+3", "2x+3", "2x+4"),
    ("1+2i", "2i+1", "1-2i"),
    ("(-\\infty,2)\\cup(3,\\infty)", "(3,\\infty)\\cup(-\\infty,2)", "(-\\infty,3)"),
    ("10\\text{ cm}", "10", "11"),
    ("\\frac{x+1}{x-1}", "\\frac{1+x}{x-1}", "1+\\frac{2}{x-1}", "\\frac{x-1}{x+1}"),
    ("28\\%", "0.28", "28", "\\frac{7}{25}"),
)


def verdicts() -> None:
    """Pairs within families of like answers, and between them: ours beside math-verify's."""
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    every = list(itertools.chain(*FAMILIES))
    pairs = [(a, b) for family in FAMILIES for a, b in itertools.product(family[:3], family)]
    pairs += random.Random(0).sample(list(itertools.product(every, every)), 150)
    scorer = MathScorer()
    differing, quick = [], 0
    for expected, answer in pairs:
        theirs = bool(verify(parse(f"${expected}$"), parse(f"${answer}$")))
        ours = scorer.score(answer, expected).value == 1.0
        quick += quick_verdict(bare_answer(answer), bare_answer(expected)) is not None
        if ours != theirs:
            differing.append((expected, answer, ours))
    scorer.close()
    logging.disable(logging.NOTSET)
    print(f"verdicts      {len(pairs)} pairs, {quick} without math-verify, {len(differing)} differ from its own")
    for each in differing:
        print("              ", json.dumps(each))


if __name__ == "__main__":
    main()
