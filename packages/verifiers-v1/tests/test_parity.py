"""The same policy through the upstream's own episodes and through ours: the same everything.

The upstream runs here with its own client and an endpoint. Its harness is ours, for time: `null`, which starts a
program for each turn, is compared in benchmarks/verifiers_episodes.py.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from conftest import Make
from upstream_reference import run_episodes

from llenvs import Action
from llenvs_verifiers_v1.relay import ID, register

EPISODES = 50


def reply(chat: list[dict[str, Any]]) -> str:
    """A policy that is right now and then, by the chat alone."""
    rng = random.Random(repr([(m["role"], m["content"]) for m in chat]))
    found = re.search(r"(\d+)\+(\d+)", chat[-1]["content"])
    if found is None:
        return rng.choice(["7", "3", "5", "hmm", ""])
    total = 2 * int(found[1])
    return rng.choice([f"<answer>{total}</answer>", str(total), f"it is {total}", ""])


def play(env: Any, task_index: int) -> Any:
    state, _ = env.reset(options={"task_index": task_index})
    while True:
        chat = [{"role": m.role, "content": m.content} for m in state.observation.messages]
        result = env.step(state, Action(reply(chat)))
        if result.done:
            return result
        state = result.next_state


@pytest.mark.parametrize(
    ("name", "seat", "taskset", "options"),
    [
        ("v1_doubler", "agent", {"num_tasks": EPISODES}, {}),
        ("v1_doubler", "agent", {"num_tasks": EPISODES}, {"mode": "episode"}),
        ("v1_guesser", "player", {"num_tasks": EPISODES}, {}),
    ],
)
def test_parity(make: Make, name: str, seat: str, taskset: dict[str, Any], options: dict[str, Any]) -> None:
    register()
    episodes = run_episodes(name, reply, EPISODES, harness=ID, seat=seat, concurrency=4, **taskset)
    env = make(name, taskset_params=taskset, **options)
    assert len(episodes) == len(env) == EPISODES
    for task_index, episode in enumerate(episodes):
        (trace,) = episode.traces
        assert episode.ok
        result = play(env, task_index)
        assert result.rewards["total_reward"].reward == trace.reward
        assert result.rewards.total == trace.reward
        weighted = {s.name: (s.reward, s.weight) for s in result.rewards if s.weight}
        assert weighted == {name: (reward.score, reward.weight) for name, reward in trace.rewards.items()}
        metrics = {s.name: s.reward for s in result.rewards if not s.weight and s.name != "total_reward"}
        assert metrics == trace.metrics
        assert result.info["stop_condition"] == trace.stop_condition
        assert result.truncated is trace.is_truncated
        theirs = [(m.role, m.content or "") for m in trace.messages]
        assert [(m.role, m.content) for m in result.next_state.observation.messages] == theirs
