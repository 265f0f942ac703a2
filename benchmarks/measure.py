"""What the benchmarks of simulators share: times that other work disturbs little, and what kept states cost."""

from __future__ import annotations

import random
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llenvs import Action, State
from llenvs.core.encoding import dumps


def timed(work: Callable[[], Any]) -> float:
    """Seconds that `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def least(rounds: Sequence[Sequence[float]]) -> float:
    """Microseconds: the median over the steps of the least of some rounds over the same steps."""
    return statistics.median(min(times) for times in zip(*rounds, strict=True)) * 1e6


def median(rounds: Sequence[Sequence[float]]) -> float:
    """Microseconds: the median of all."""
    return statistics.median(t for times in rounds for t in times) * 1e6


def us(times: Sequence[float]) -> str:
    """The median of `times` (seconds) in microseconds, as text."""
    return f"{statistics.median(times) * 1e6:.0f} us"


def resident() -> int:
    """Bytes of memory of this process; the greatest so far where the system does not tell the present."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def walked(env: Any, actions: Sequence[Action], *, seed: int, task_index: int = 0) -> list[float]:
    """Seconds of each step of an episode of ours."""
    state, _ = env.reset(seed=seed, options={"task_index": task_index})
    times = []
    for action in actions:
        began = time.perf_counter()
        result = env.step(state, action)
        times.append(time.perf_counter() - began)
        state = result.next_state
    return times


def print_forward(alone: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> None:
    """What a step costs over the upstream: rounds of seconds over the same steps."""
    a, b = least(alone), least(ours)
    print(
        f"forward       upstream {a:6.0f} us   ours {b:6.0f} us   overhead {b - a:6.0f} us a step "
        f"({b / a:.2f} x)   (plain medians {median(alone):.0f} and {median(ours):.0f})"
    )


def kept(
    env: Any,
    policy: Callable[[State[Any], random.Random], Action],
    *,
    episodes: int = 200,
    steps: int = 100,
    drawn: int = 500,
) -> None:
    """Keep the states of `episodes` walks of `steps` steps each, then step `drawn` of them again and compare.

    An episode that ends within its steps is followed by another with a new seed.
    """
    rng, before = random.Random(0), resident()
    taken = []
    for episode in range(episodes):
        task = episode % len(env)
        state, _ = env.reset(seed=episode + 1, options={"task_index": task})
        for _ in range(steps):
            action = policy(state, rng)
            result = env.step(state, action)
            taken.append((state, action, result))
            if result.done:
                state, _ = env.reset(seed=episode + 10_001, options={"task_index": task})
            else:
                state = result.next_state
    grown = resident() - before
    chosen = rng.sample(taken, min(drawn, len(taken)))
    began = time.perf_counter()
    right = sum(dumps(env.step(s, a)) == dumps(r) for s, a, r in chosen)
    seconds = time.perf_counter() - began
    size = statistics.median(len(s.to_json()) for s, _, _ in chosen)
    print(
        f"kept          {len(taken):,} states, {episodes} episodes: the process grew by {grown / 2**20:.0f} MiB; "
        f"a state is {size:,.0f} bytes of JSON; {right} of {len(chosen)} step to the recorded result, "
        f"{seconds / len(chosen) * 1e6:.0f} us each with the comparison"
    )
    print(f"              {getattr(env, 'stats', '')}")
    assert right == len(chosen)
