"""States stepped from anywhere: by replay, behind a server, in another process."""

from __future__ import annotations

import random
from typing import Any

import pytest
from conftest import Make

from llenvs import Action, State
from llenvs.testing.walks import check_walk, check_walk_in_second_process


def policy(state: State[Any], rng: random.Random) -> Action:
    if "bump" in {tool.name for tool in state.observation.available_tools}:
        return Action.from_tool_call("bump", {"n": rng.randrange(5)}) if rng.random() < 0.8 else Action("done")
    return Action(rng.choice(["1", "4", "5", "8", "hmm", "<answer>2</answer>"]))


@pytest.mark.parametrize(
    ("name", "options"),
    [("v1_guesser", {"max_live": 3}), ("v1_doubler", {"max_live": 2}), ("v1_doubler", {"mode": "episode"})],
)
def test_walks_branch_anywhere_in_any_order_from_four_threads(
    make: Make, name: str, options: dict[str, Any]
) -> None:
    env = make(name, **options)
    check_walk(env, policy)
    assert env.stats.live <= env._cache.limits.live


def test_an_older_state_is_replayed_and_checked(make: Make) -> None:
    env = make("v1_guesser", max_live=1)
    state, _ = env.reset(options={"task_index": 0})
    middle = env.step(env.step(state, Action("1")).next_state, Action("2")).next_state
    assert env.stats.replayed == 0
    for text, hint in (("5", "higher"), ("8", "lower"), ("x", "number please")):
        assert env.step(middle, Action(text)).next_state.observation.prompt == hint
    assert env.stats.replayed == 4
    assert len(middle.to_json()) < 2500


def test_through_the_process_runtime_and_in_a_second_process(make: Make) -> None:
    pytest.importorskip("llenvs_container")
    env = make("v1_guesser")
    with make("v1_guesser", container="process") as behind:
        check_walk(env, policy, through=behind, steps=20)
    check_walk_in_second_process("verifiers_v1/v1_guesser", {}, policy, steps=20)
