"""Episodes played by the upstream alone and through the adapter: the same messages, rewards and ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from aviary_play import alone, calculating, ours, searching, telling

from llenvs_aviary.environment import AviaryEnvironment

Make = Callable[..., AviaryEnvironment]
EPISODES = 12


@pytest.fixture(scope="module")
def problems(gsm8k: str) -> Any:
    from aviary.envs.gsm8k import GSM8kDataset

    return GSM8kDataset("test", hf_source=gsm8k)


def test_gsm8k(make: Make, gsm8k: str, problems: Any) -> None:
    env, rng = make("gsm8k", data_dir=gsm8k), random.Random(0)
    for _ in range(EPISODES):
        index = rng.randrange(len(env))
        actions = calculating(rng, problems.get_new_env_by_idx(index).answer)
        assert ours(env, index, actions) == alone(problems.get_new_env_by_idx(index), actions)


def test_gsm8k_with_other_rewards(make: Make, gsm8k: str) -> None:
    from aviary.envs.gsm8k import GSM8kDataset

    config = {
        "correct_reward": 2.0,
        "incorrect_reward": -0.5,
        "tool_failure_reward": -0.25,
        "tool_success_reward": 0.125,
        "rel_tol": 0.1,
        "done_on_failure": False,
    }
    data = GSM8kDataset("val", config=config, hf_source=gsm8k)
    env, rng = make("gsm8k", data_dir=gsm8k, split="val", **config), random.Random(1)
    for _ in range(EPISODES):
        index = rng.randrange(len(env))
        actions = calculating(rng, data.get_new_env_by_idx(index).answer)
        assert ours(env, index, actions) == alone(data.get_new_env_by_idx(index), actions)


def test_hotpotqa(make: Make, hotpotqa: str) -> None:
    import json
    from pathlib import Path

    from aviary.envs.hotpotqa import HotPotQAEnv

    rows = [json.loads(line) for line in (Path(hotpotqa) / "questions.jsonl").read_text().splitlines()]
    HotPotQAEnv.wiki_cache.update(json.loads((Path(hotpotqa) / "wiki_cache.json").read_text()))
    try:
        env, rng = make("hotpotqa", data_dir=hotpotqa), random.Random(2)
        for number in range(EPISODES):
            index = number % len(env)
            row = rows[index]
            actions = searching(rng, row["answer"])
            upstream = HotPotQAEnv(UUID(bytes=bytes(4) + bytes.fromhex(row["id"])), row["question"], row["answer"])
            assert ours(env, index, actions) == alone(upstream, actions)
    finally:
        HotPotQAEnv.wiki_cache.clear()


@pytest.mark.parametrize("ends", [True, False])
def test_dummy(make: Make, ends: bool) -> None:
    from aviary.core import DummyEnv

    topics = ["frogs", "kings", "rain"]
    env, rng = make("dummy", tasks=topics, end_immediately=ends), random.Random(3)
    for number in range(EPISODES):
        index = number % 3
        actions = telling(rng)
        upstream = DummyEnv(task=topics[index], end_immediately=ends)
        assert ours(env, index, actions) == alone(upstream, actions)
