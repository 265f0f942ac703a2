"""Craftax: what our layer costs beside the upstream's jitted step, and that it shows the same.

Needs llenvs-craftax. Targets: a forward step at most 10 % over the jitted step; a branch from step 40 at most 2 ms
over a plain step; 20,000 states bounded, 500 of them step to the recorded result; 1,000 random steps equal the
upstream's own state by state.

The upstream's time is that of its jitted step alone, with keys made before and reward and done read after it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

import jax
import numpy as np
from measure import kept, print_forward, timed, us, walked

import llenvs
from llenvs import Action, State

NAMES = {"classic": "craftax-classic", "full": "craftax"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=NAMES, nargs="?", default="classic")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--parity", type=int, default=1000, help="steps")
    parser.add_argument("--batch", action="store_true", help="also the batches, which take long to compile")
    args = parser.parse_args()
    env: Any = llenvs.make(f"craftax/{NAMES[args.variant]}", observation_mode="text")
    began = time.perf_counter()
    env.warmup()
    print(f"{args.variant}: ready after {time.perf_counter() - began:.1f} s")
    upstream = env._game.upstream.env
    parity(env, upstream, args.parity)
    actions = lasting(env, 120)
    for mode in ("text", "symbolic"):
        print(mode)
        shown = llenvs.make(f"craftax/{NAMES[args.variant]}", observation_mode=mode)
        forward(shown, upstream, actions, args.rounds)
        shown.close()
    branches(args.variant, upstream, actions, args.rounds)
    if args.batch:
        batches(env)
    kept(env, lambda state, rng: Action(str(rng.randrange(len(env.actions)))), episodes=args.episodes)


def parity(env: Any, upstream: Any, steps: int) -> None:
    """Our states and the upstream's, in every bit."""
    rng, seed, params, equal = random.Random(1), 100, upstream.default_params, 0
    state, _ = env.reset(seed=seed)
    _, alone = upstream.reset(jax.random.PRNGKey(seed), params)
    for _ in range(steps):
        action = rng.randrange(len(env.actions))
        key = jax.random.fold_in(jax.random.PRNGKey(seed), alone.timestep)
        _, alone, reward, done, _ = upstream.step(key, alone, action, params)
        result = env.step(state, Action(str(action)))
        state = result.next_state
        leaves = jax.tree.leaves(jax.device_get(alone))
        same = all(
            np.asarray(a).tobytes() == b.tobytes() for a, b in zip(leaves, env.arrays(state).values(), strict=True)
        )
        equal += same and result.rewards.total == float(reward) and result.done == bool(done)
        if result.done:
            seed += 1
            state, _ = env.reset(seed=seed)
            _, alone = upstream.reset(jax.random.PRNGKey(seed), params)
    print(f"parity        {equal:,} of {steps:,} random steps equal the upstream's own, in every bit")
    assert equal == steps


def lasting(env: Any, length: int) -> list[Action]:
    """Random actions that the player of seed 12 survives."""
    for attempt in range(100):
        rng = random.Random(attempt)
        actions = [Action(str(rng.randrange(len(env.actions)))) for _ in range(length)]
        state, _ = env.reset(seed=12)
        for action in actions:
            state = env.step(state, action).next_state
            if state.is_terminal:
                break
        else:
            return actions
    raise SystemExit("no random walk lasted")


def alone(upstream: Any, keys: list[Any], numbers: list[int]) -> list[float]:
    """Seconds of each step of the upstream."""
    params, times = upstream.default_params, []
    _, state = upstream.reset(jax.random.PRNGKey(12), params)
    for key, number in zip(keys, numbers, strict=True):
        began = time.perf_counter()
        _, state, reward, done, _ = upstream.step(key, state, number, params)
        float(reward), bool(done)
        times.append(time.perf_counter() - began)
    return times


def forward(env: Any, upstream: Any, actions: list[Action], rounds: int) -> None:
    keys = [jax.random.fold_in(jax.random.PRNGKey(12), t) for t in range(len(actions))]
    numbers = [int(action.text) for action in actions]
    env.warmup()
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(alone(upstream, keys, numbers))
        ours.append(walked(env, actions, seed=12))
    print_forward(theirs[1:], ours[1:])


def branches(variant: str, upstream: Any, actions: list[Action], rounds: int) -> None:
    """From step 40, another action, when the state is not among those kept ready."""
    env: Any = llenvs.make(f"craftax/{NAMES[variant]}", observation_mode="text", max_live=1)
    states = [env.reset(seed=12)[0]]
    for action in actions[:60]:
        states.append(env.step(states[-1], action).next_state)
    there, left = states[40], Action("left")
    text = there.to_json()
    params = upstream.default_params
    keys = [jax.random.fold_in(jax.random.PRNGKey(12), t) for t in range(41)]
    saved = upstream.reset(jax.random.PRNGKey(12), params)[1]
    for key, action in zip(keys[:40], actions, strict=False):
        saved = upstream.step(key, saved, int(action.text), params)[1]

    def snapshot() -> None:
        float(upstream.step(keys[40], saved, 1, params)[2])

    def replay() -> None:
        state = upstream.reset(jax.random.PRNGKey(12), params)[1]
        for key, action in zip(keys[:40], actions, strict=False):
            state = upstream.step(key, state, int(action.text), params)[1]
        float(upstream.step(keys[40], state, 1, params)[2])

    plain: Any = llenvs.make(f"craftax/{NAMES[variant]}", observation_mode="text")
    plain.step(there, left)
    count = 20 * rounds
    ours, from_json, ready, own = [], [], [], []
    for _ in range(count):  # in turn, so that other work on the machine meets all alike
        ours.append(timed(lambda: env.step(there, left)))
        from_json.append(timed(lambda: env.step(State.from_json(text), left)))
        ready.append(timed(lambda: plain.step(there, left)))
        own.append(timed(snapshot))
    again = [timed(replay) for _ in range(rounds)]
    over = statistics.median(a - b for a, b in zip(ours, ready, strict=True)) * 1e6
    print(
        f"branch at 40  ours {us(ours)} ({over:+.0f} us over a plain step)   from JSON {us(from_json)}   "
        f"kept ready {us(ready)}   upstream from its state {us(own)}   replay {us(again)}   "
        f"state as JSON {len(text):,} bytes"
    )


def batches(env: Any) -> None:
    for count in (8, 64):
        batch(env, count)


def batch(env: Any, count: int) -> None:
    states = [env.reset(seed=seed)[0] for seed in range(count)]
    actions = [Action(str(place % len(env.actions))) for place in range(count)]

    def together() -> Any:
        return env.step_batch(states, actions)

    def singly() -> Any:
        return [env.step(s, a) for s, a in zip(states, actions, strict=True)]

    assert together() == singly()
    at_once, apart = (count / min(timed(work) for _ in range(5)) for work in (together, singly))
    print(f"batch         {count} states: {at_once:,.0f} steps a second, one by one {apart:,.0f}")


if __name__ == "__main__":
    main()
