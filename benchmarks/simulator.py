"""The simulator layer: what a step, a branch and 20,000 kept states cost beside the upstream alone.

Needs llenvs-jericho and story files (LLENVS_JERICHO_GAMES, or the folder shared/data/jericho beside the checkout).
Targets: forward at most 100 us a step over the upstream; a branch from step 40 at most 1 ms; 20,000 states bounded
by the cache, 500 of them step to the recorded result; the walkthrough makes 350 points on Zork I.

Forward times are medians over the steps of the least of some rounds, which other work on the machine disturbs
least; the plain medians stand beside them.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import jericho
from measure import kept, least, print_forward, timed, us, walked

import llenvs
from llenvs import Action, EnvironmentSpec, Observation, State
from llenvs.core.simulator import CacheLimits, Frame, Simulator, SimulatorEnvironment, Snapshots

GAMES = os.environ.get("LLENVS_JERICHO_GAMES") or str(Path(__file__).parents[2] / "shared" / "data" / "jericho")
STORY = "zork1-r119"
WALKED = (
    *(
        "north",
        "south",
        "east",
        "west",
        "up",
        "down",
        "look",
        "open window",
        "enter house",
        "take lamp",
        "take sword",
    ),
    *("move rug", "open trap door", "turn on lamp", "kill troll with sword", "take all", "drop all", "wait"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 rounds, 20 episodes")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rounds, episodes = (3, 20) if args.quick else (args.rounds, 200)
    env = llenvs.make(f"jericho/{STORY}", games_dir=GAMES, max_steps=None)
    walkthrough(env)
    forward(env, rounds)
    branches(env, rounds)
    kept(env, lambda state, rng: Action(rng.choice(WALKED)), episodes=episodes)
    env.close()
    bare(rounds)


def walkthrough(env: Any) -> None:
    seed, commands = env.walkthrough(like="zork1")
    state, _ = env.reset(seed=seed)
    for command in commands:
        result = env.step(state, Action(command))
        state = result.next_state
    score = state.metadata.info["score"]
    print(f"walkthrough   {len(commands)} actions, {score} points, terminated {result.terminated}")
    assert score == 350


def forward(env: Any, rounds: int) -> None:
    _, commands = env.walkthrough(like="zork1")
    actions = [Action(c) for c in commands[:300]]
    upstream = jericho.FrotzEnv(f"{GAMES}/{STORY}.z3", seed=12)
    alone, ours = [], []
    for _ in range(rounds):
        upstream.reset()
        alone.append([timed(lambda a=a: upstream.step(a.text)) for a in actions])
        ours.append(walked(env, actions, seed=12))
    print_forward(alone, ours)


def branches(env: Any, rounds: int) -> None:
    """From step 40, another action, while the simulator stands at the end of a longer episode."""
    _, commands = env.walkthrough(like="zork1")
    states = [env.reset(seed=12)[0]]
    for command in commands[:80]:
        states.append(env.step(states[-1], Action(command)).next_state)
    there, look = states[40], Action("look")
    upstream = jericho.FrotzEnv(f"{GAMES}/{STORY}.z3", seed=12)
    upstream.reset()
    for command in commands[:40]:
        upstream.step(command)
    saved = upstream.get_state()

    def by_snapshot() -> None:
        upstream.set_state(saved)
        upstream.step("look")

    def by_replay() -> None:
        upstream.reset()
        for command in commands[:40]:
            upstream.step(command)
        upstream.step("look")

    count = 30 * rounds
    native = [timed(by_snapshot) for _ in range(count)]
    replay = [timed(by_replay) for _ in range(count)]
    ours = [timed(lambda: env.step(there, look)) for _ in range(count)]
    text = there.to_json()
    from_json = [timed(lambda: env.step(State.from_json(text), look)) for _ in range(count)]
    print(
        f"branch at 40  ours {us(ours)}   from JSON {us(from_json)}   upstream's snapshot {us(native)}   "
        f"replay from the start {us(replay)}   state as JSON {len(text):,} bytes"
    )


class Counter(Simulator):
    """An upstream that costs nothing, so that what is left is the layer."""

    def start(self, task_index: int, seed: int) -> Frame:
        self.count = 0
        return Frame(Observation("0"))

    def act(self, action: Action) -> Frame:
        self.count += 1
        return Frame(Observation(f"You are at {self.count} and nothing else happens here."))


class LocalCounter(Counter):
    snapshots = Snapshots.LOCAL

    def save(self) -> Any:
        return self.count

    def restore(self, snapshot: Any, task_index: int, seed: int) -> None:
        self.count = snapshot

    def snapshot_size(self, snapshot: Any) -> int:
        return 28


def bare(rounds: int) -> None:
    """The layer over an upstream without cost, and what its bounded cache keeps of 20,000 states."""
    for simulator in (Counter, LocalCounter):
        spec = EnvironmentSpec("counter", "bench", max_steps=None, is_multi_turn=True)
        limits = CacheLimits(snapshots=1000)
        env = SimulatorEnvironment(spec, simulator, num_tasks=1, snapshots=simulator.snapshots, limits=limits)
        action, all_times, states = Action("go"), [], []
        for seed in range(rounds):
            state, _ = env.reset(seed=seed)
            times = []
            for _ in range(300):
                began = time.perf_counter()
                result = env.step(state, action)
                times.append(time.perf_counter() - began)
                state = result.next_state
                states.append(state)
            all_times.append(times)
        old = states[40]
        branch = [timed(partial(env.step, old, action)) for _ in range(100)]
        print(
            f"layer alone   {simulator.snapshots.value:5}  forward {least(all_times):5.0f} us a step   "
            f"branch at 40 {us(branch)}   {env.stats}"
        )
        env.close()


if __name__ == "__main__":
    main()
