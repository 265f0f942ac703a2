"""The same item in every process, whatever its hash seed and what its global generators have done."""

import json
import os
import subprocess
import sys

import pytest

NAMES = [
    *("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"),
    *("list_functions", "codeio", "pool_matrix", "decimal_arithmetic", "rearc"),
]
PROGRAM = f"""
import json, random, sys, llenvs
from llenvs_reasoning_gym.worker import WORKER
WORKER.acquire()
states = {{}}
for name in {NAMES!r}:
    with llenvs.make(f"reasoning_gym/{{name}}", size=12) as env:
        for i in (range(12) if sys.argv[1] == "up" else reversed(range(12))):
            if name == "knight_swap" and i > 2:
                continue
            random.seed(sys.argv[1])
            states[f"{{name}} {{i}}"] = env.reset(options={{"task_index": i}})[0].to_json()
json.dump(states, sys.stdout, sort_keys=True)
"""


def run(hash_seed: str, order: str) -> dict[str, str]:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, order],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    states: dict[str, str] = json.loads(result.stdout)  # nothing but our line is on stdout
    return states


def test_items_are_equal_in_every_process_and_order() -> None:
    one, other = run("1", "up"), run("2", "down")
    assert len(one) == 12 * (len(NAMES) - 1) + 3
    assert one == other


def test_the_callers_global_generators_are_left_alone() -> None:
    import random

    import numpy as np

    import llenvs

    before, before_numpy = random.getstate(), np.random.get_state()[1].copy()
    for name in ("list_functions", "pool_matrix", "codeio", "leg_counting"):
        with llenvs.make(f"reasoning_gym/{name}") as env:
            env.step(env.reset(options={"task_index": 3})[0], llenvs.Action("1"))
    assert random.getstate() == before
    assert (np.random.get_state()[1] == before_numpy).all()


@pytest.mark.parametrize("name", ["tower_of_hanoi", "codeio", "bf", "rectangle_count", "sokoban"])
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    import llenvs

    with llenvs.make(f"reasoning_gym/{name}", size=5, answer_extractor="raw") as env:
        for index in range(5):
            state, _ = env.reset(options={"task_index": index})
            env.step(state, llenvs.Action("Move disk 3 from Peg 1 to Peg 2"))
    assert capfd.readouterr() == ("", "")
