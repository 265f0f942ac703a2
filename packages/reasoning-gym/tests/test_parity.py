"""Every generator beside the upstream alone: same items, same scores, exact JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs import Action, State
from llenvs_reasoning_gym.catalogue import CATEGORY
from llenvs_reasoning_gym.scoring import UNPARSABLE


@pytest.fixture(scope="module")
def upstream() -> dict[str, list[dict[str, Any]]]:
    program = Path(__file__).with_name("upstream_reference.py")
    result = subprocess.run(
        [sys.executable, "-W", "ignore", program],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    items: dict[str, list[dict[str, Any]]] = json.loads(result.stdout)
    return items


@pytest.mark.parametrize("name", sorted(CATEGORY))
def test_items_and_scores_are_the_upstreams(name: str, upstream: dict[str, list[dict[str, Any]]]) -> None:
    address = f"reasoning_gym/{name}"
    raw = llenvs.make(address, size=2, repair_scorers=False, answer_extractor="raw")
    tagged = llenvs.make(address, size=2, repair_scorers=False)
    with raw, tagged:
        for index, expected in enumerate(upstream[name]):
            state, _ = raw.reset(options={"task_index": index})
            entry = state.hidden["entry"]
            assert state.observation.prompt == expected["question"]
            assert entry["answer"] == expected["answer"]
            travelled = State.from_json(state.to_json())
            assert identical(travelled.hidden, state.hidden)
            before = state.to_json()
            best = 0.0
            for answer, value in expected["scores"]:
                env = tagged if answer is None else raw
                rewards = env.step(travelled, Action(answer or "")).rewards
                signal = rewards["score"]
                if isinstance(value, str):  # the upstream's scorer raised this
                    assert (signal.reward, value in signal.metadata["error"]) == (UNPARSABLE.get(name, 0.0), True)
                else:
                    assert signal.reward == value, f"answer {answer!r}: {signal}"
                    best = max(best, value)
                assert rewards["correctness"].reward == float(signal.reward == 1.0)
                assert env.step(state, Action(answer or "")).rewards == rewards
            assert state.to_json() == before
            if name not in ("boxnet", "rush_hour"):  # no right answer comes with their items
                assert best == 1.0


def identical(one: Any, other: Any) -> bool:
    """Equal in every part and its type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return identical(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(identical, one, other))
    return bool(one == other)
