"""aviary: a step, a branch and kept states beside the upstream alone; and parity over many episodes.

Needs llenvs-aviary[gsm8k,hotpotqa] and data (LLENVS_AVIARY_DATA, or the folder shared/data/aviary beside the
checkout). (Not called aviary.py: a script's folder is searched for modules first, and would hide the upstream.)
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from measure import kept, print_forward, timed, us, walked

os.environ.setdefault("HF_HUB_OFFLINE", "1")
_cache = tempfile.TemporaryDirectory(prefix="llenvs-aviary-", ignore_cleanup_errors=True)
os.environ.setdefault("HF_HOME", _cache.name)
sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "aviary" / "tests"))

from aviary_play import KEYWORDS, alone, calculating, call, data_folder, ours, searching, telling  # noqa: E402

import llenvs  # noqa: E402
from llenvs import Action, State  # noqa: E402

DATA = data_folder()
Actions = Sequence[Action]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--episodes", type=int, default=50, help="episodes of each kind compared with the upstream"
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds, 20 walks of kept states")
    args = parser.parse_args()
    rounds, walks = (3, 20) if args.quick else (args.rounds, 200)
    parity(args.episodes)
    gsm8k = llenvs.make("aviary/gsm8k", data_dir=str(DATA / "gsm8k"), max_steps=None)
    hotpotqa = llenvs.make("aviary/hotpotqa", data_dir=str(DATA / "hotpotqa"), max_steps=None)
    dummy = llenvs.make("aviary/dummy", end_immediately=False, max_steps=None)
    numbers = random.Random(0)
    some = {
        "gsm8k": (gsm8k, problem, [call("calculator", expr=f"{n}*{numbers.randrange(99)}") for n in range(100)]),
        "hotpotqa": (
            hotpotqa,
            question,
            [
                call("search", entity="Ardenia"),
                *(call("lookup", keyword=numbers.choice(KEYWORDS)) for _ in range(99)),
            ],
        ),
        "dummy": (dummy, story, [call("cast_int", x=numbers.random() * 99) for _ in range(100)]),
    }
    for name, (env, make, actions) in some.items():
        print(f"-- {name}")
        print_forward(
            [forward_alone(make, actions) for _ in range(rounds)],
            [walked(env, actions, seed=1) for _ in range(rounds)],
        )
        branch(env, make, actions, rounds)
    print("-- gsm8k")

    def calculate(state: State[Any], rng: random.Random) -> Action:
        return call("calculator", expr=f"{rng.randrange(99)}*{rng.randrange(99)}")

    kept(gsm8k, calculate, episodes=walks)
    for env, _, _ in some.values():
        env.close()


# -- parity -----------------------------------------------------------------------------------------------


def parity(episodes: int) -> None:
    """Episodes with the same actions: messages, rewards and ends by the upstream alone and by ours."""
    from aviary.core import DummyEnv

    logging.getLogger("aviary").addHandler(logging.NullHandler())
    topics = [f"topic {n}" for n in range(10)]
    data = dataset()
    rows = questions()
    kinds: dict[str, tuple[Any, Callable[[int], Any], Callable[[random.Random, int], list[Action]]]] = {
        "gsm8k": (
            llenvs.make("aviary/gsm8k", data_dir=str(DATA / "gsm8k")),
            data.get_new_env_by_idx,
            lambda rng, index: calculating(rng, data.get_new_env_by_idx(index).answer),
        ),
        "hotpotqa": (
            llenvs.make("aviary/hotpotqa", data_dir=str(DATA / "hotpotqa")),
            question,
            lambda rng, index: searching(rng, rows[index]["answer"]),
        ),
        "dummy": (
            llenvs.make("aviary/dummy", tasks=topics, end_immediately=False),
            lambda index: DummyEnv(task=topics[index], end_immediately=False),
            lambda rng, index: telling(rng),
        ),
    }
    for name, (env, make, play) in kinds.items():
        rng, same, steps, paid = random.Random(name), 0, 0, 0.0
        for _ in range(episodes):
            index = rng.randrange(len(env))
            actions = play(rng, index)
            theirs = alone(make(index), actions)
            same += ours(env, index, actions) == theirs
            steps, paid = steps + len(theirs) - 1, paid + sum(each[1] for each in theirs)
        print(
            f"parity        {name:9} {same} of {episodes} episodes alike ({steps} steps, rewards {paid:g} in all)"
        )
        assert same == episodes
        env.close()


def dataset() -> Any:
    from aviary.envs.gsm8k import GSM8kDataset

    return GSM8kDataset("test", hf_source=str(DATA / "gsm8k"))


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "hotpotqa" / "questions.jsonl").read_text().splitlines()]


def problem(index: int = 0) -> Any:
    from aviary.envs.gsm8k import CalculatorEnv

    return CalculatorEnv("test_0", "How many?", 18.0)


def question(index: int = 0) -> Any:
    from aviary.envs.hotpotqa import HotPotQAEnv

    if not HotPotQAEnv.wiki_cache:
        HotPotQAEnv.wiki_cache.update(json.loads((DATA / "hotpotqa" / "wiki_cache.json").read_text()))
    row = questions()[index]
    return HotPotQAEnv(UUID(bytes=bytes(4) + bytes.fromhex(row["id"])), row["question"], row["answer"])


def story(index: int = 0) -> Any:
    from aviary.core import DummyEnv

    return DummyEnv(end_immediately=False)


# -- times ------------------------------------------------------------------------------------------------


def forward_alone(make: Callable[[int], Any], actions: Actions) -> list[float]:
    """Seconds of each step of an episode of the upstream on one loop that runs on."""

    async def play() -> list[float]:
        env, times = make(0), []
        await env.reset()
        for action in actions:
            sent = as_request(action)
            began = time.perf_counter()
            await env.step(sent)
            times.append(time.perf_counter() - began)
        return times

    return asyncio.run(play())


def as_request(action: Action) -> Any:
    from aviary.core import ToolCall, ToolRequestMessage

    return ToolRequestMessage(
        tool_calls=[ToolCall.from_name(each.name, each.id, **each.arguments) for each in action.tool_calls]
    )


def branch(env: Any, make: Callable[[int], Any], actions: Actions, rounds: int) -> None:
    """From step 40 of an episode of 80, another action; by the upstream: a deep copy, or a replay."""
    states = [env.reset(seed=1, options={"task_index": 0})[0]]
    for action in actions[:80]:
        states.append(env.step(states[-1], action).next_state)
    there, other = states[40], actions[90]
    text = there.to_json()
    count = 10 * rounds

    async def of_upstream() -> tuple[list[float], list[float]]:
        original = make(0)
        await original.reset()
        for action in actions[:40]:
            await original.step(as_request(action))
        by_copy, by_replay = [], []
        for _ in range(count):
            began = time.perf_counter()
            await copy.deepcopy(original).step(as_request(other))
            by_copy.append(time.perf_counter() - began)
            began = time.perf_counter()
            again = make(0)
            await again.reset()
            for action in [*actions[:40], other]:
                await again.step(as_request(action))
            by_replay.append(time.perf_counter() - began)
        return by_copy, by_replay

    by_copy, by_replay = asyncio.run(of_upstream())
    mine = [timed(lambda: env.step(there, other)) for _ in range(count)]
    from_json = [timed(lambda: env.step(State.from_json(text), other)) for _ in range(count)]
    print(
        f"branch at 40  ours {us(mine)}   from JSON {us(from_json)}   upstream by deepcopy {us(by_copy)}   "
        f"upstream by replay {us(by_replay)}   state as JSON {len(text):,} bytes"
    )


if __name__ == "__main__":
    main()
