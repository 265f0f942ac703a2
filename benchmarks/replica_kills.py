"""Steps while replicas are killed: every reward right, none lost, none doubled.

`--steps` steps of leg_counting over `--replicas` servers, spread over many seconds. Each second one of those
that listen, drawn at random, gets SIGKILL. Every other action is right; each reward is compared with the one that
the same step has in this process.

    python benchmarks/replica_kills.py [--steps 5000] [--replicas 3] [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path

import llenvs
from llenvs import Action
from llenvs.container import ContainerConfig, create_container_environment
from llenvs.container.client import ContainerEnvironment

ENVIRONMENT = {"name": "leg_counting", "adapter": "reasoning_gym", "size": 100, "seed": 42}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="over which the steps are spread")
    args = parser.parse_args()

    local = llenvs.make("reasoning_gym/leg_counting", size=100, seed=42)
    actions, wanted = [], []
    for i in range(args.steps):
        state, _ = local.reset(options={"task_index": i % 100})
        answer = state.hidden["entry"]["answer"] if i % 2 else str(i)
        actions.append(Action(f"<answer>{answer}</answer>"))
        wanted.append(local.step(state, actions[i]).rewards.total)

    config = ContainerConfig(replicas=args.replicas, restarts=1000)
    with create_container_environment(ENVIRONMENT, config) as env:
        asyncio.run(measure(env, actions, wanted, args.seconds))
    print(f"servers left: {len(servers())}")


async def measure(env: ContainerEnvironment, actions: list[Action], wanted: list[float], seconds: float) -> None:
    states = [(await env.areset(options={"task_index": i}))[0] for i in range(len(env))]
    answers: Counter[int] = Counter()
    rewards: dict[int, float] = {}
    times: list[float] = []
    began = time.perf_counter()

    async def one(i: int) -> None:
        await asyncio.sleep(max(0.0, began + i * seconds / len(actions) - time.perf_counter()))
        sent = time.perf_counter()
        result = await env.astep(states[i % len(states)], actions[i])
        times.append(time.perf_counter() - sent)
        answers[i] += 1
        rewards[i] = result.rewards.total

    killing = asyncio.create_task(kill_every_second())
    ended = await asyncio.gather(*map(one, range(len(actions))), return_exceptions=True)
    failed = [each for each in ended if each is not None]
    killing.cancel()
    took = time.perf_counter() - began
    kills = (await asyncio.gather(killing, return_exceptions=True))[0]

    right = sum(rewards.get(i) == reward for i, reward in enumerate(wanted))
    times.sort()
    print(f"{len(actions)} steps in {took:.1f} s, servers killed: {kills}")
    print(
        f"rewards right: {right} (of which 1.0: {wanted.count(1.0)}), lost: {len(actions) - len(rewards)}, "
        f"doubled: {sum(n > 1 for n in answers.values())}, errors: {len(failed)} {failed[:1] or ''}"
    )
    print(
        f"time of a step: median {1e3 * statistics.median(times):.1f} ms, "
        f"p99 {1e3 * times[int(0.99 * len(times))]:.0f} ms, longest {1e3 * times[-1]:.0f} ms"
    )
    if right != len(actions) or failed or max(answers.values()) > 1:
        raise SystemExit("FAILED")


async def kill_every_second() -> int:
    """SIGKILL to a server each second, until cancelled; how many were killed."""
    kills, draw = 0, random.Random(0)
    try:
        while True:
            await asyncio.sleep(1.0)
            found = await asyncio.to_thread(servers)
            if listening := sorted(pid for pid, path in found.items() if path.exists()):
                os.kill(draw.choice(listening), signal.SIGKILL)
                kills += 1
    except asyncio.CancelledError:
        return kills


def servers() -> dict[int, Path]:
    """Process ids and sockets of the servers that descend from this process, each the child of a guardian."""
    listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listing.splitlines())}
    found = {}
    for pid, parent in parents.items():
        if parents.get(parent) == os.getpid():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:  # it ended at this moment
                continue
            if "llenvs_container" in command:
                found[pid] = Path(command[command.index("--uds") + 1])
    return found


if __name__ == "__main__":
    main()
