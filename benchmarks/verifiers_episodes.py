"""Verifiers: episodes of ours beside the upstream's own, in the same run; of the API that is installed.

Needs llenvs-verifiers (0.3.1, classic) or llenvs-verifiers-v1 (0.4) in the environment, and for the upstream's
own harness of v1 the command `uv` (it installs that harness's dependencies from a package index). The modules are
those of the tests. Targets: the same rewards in all episodes; a classic episode about twice the upstream's
processor time at most (which asks an instant client, without HTTP); a v1 episode a tenth of the upstream's.

Times are processor times, children included, which other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).parents[1] / "packages"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000, help="single-turn episodes (classic, v1 in place)")
    parser.add_argument(
        "--null", type=int, default=50, help="episodes of v1 with the upstream's harness; 0 for none"
    )
    parser.add_argument("--quick", action="store_true", help="200 episodes, 8 with the upstream's harness")
    args = parser.parse_args()
    episodes, null = (200, 8) if args.quick else (args.episodes, args.null)
    try:
        installed = version("verifiers")
    except PackageNotFoundError:
        print("verifiers is not installed here")
        return
    print(f"verifiers {installed}")
    package = "verifiers" if installed.startswith("0.3") else "verifiers-v1"
    tests = PACKAGES / package / "tests"
    sys.path[:0] = [str(tests), str(tests / "modules")]
    if package == "verifiers":
        classic(episodes)
    else:
        v1(episodes, null)


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds that `work` takes here and in children, and what it gives."""

    def now() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    began = now()
    result = work()
    return now() - began, result


def show(what: str, count: int, theirs: float, ours: float) -> None:
    a, b = 1000 * theirs / count, 1000 * ours / count
    print(f"{what:34} upstream {a:8.2f} ms   ours {b:8.2f} ms a rollout   {b / a:6.3f} x")


def classic(episodes: int) -> None:
    from test_parity import play, reply
    from upstream_reference import evaluate

    import llenvs

    for name, args, count in (
        ("vf_sums", {"num_tasks": episodes}, episodes),
        ("vf_tools", {}, 20),
        ("vf_guess", {"secrets": tuple(i % 9 + 1 for i in range(200)), "max_turns": 6}, 200),
        ("vf_gym", {"num_eval": 200}, 200),
    ):
        with llenvs.make(f"verifiers/{name}", args=args) as env:
            evaluate(env.upstream, reply, 5)  # warm
            play(env, 0)
            theirs, outputs = spent(lambda env=env, count=count: evaluate(env.upstream, reply, count))
            ours, results = spent(lambda env=env, count=count: [play(env, i) for i in range(count)])
            same = sum(
                r.rewards["total_reward"].reward == o["reward"] for r, o in zip(results, outputs, strict=True)
            )
            show(f"{name} ({count} episodes)", count, theirs, ours)
            print(f"{'':34} {same} of {count} rewards are the same")
            assert same == count
    branches()


def branches() -> None:
    """A branch from a state ten turns old, by a copy and by replay."""
    import llenvs
    from llenvs import Action

    for branching in ("copy", "replay"):
        with llenvs.make("verifiers/vf_guess", branching=branching, max_live=1) as env:
            state, _ = env.reset(options={"task_index": 0})
            for _ in range(10):
                state = env.step(state, Action("hmm")).next_state
            env.step(state, Action("hmm"))
            seconds, _ = spent(lambda env=env, state=state: [env.step(state, Action("hmm")) for _ in range(200)])
            print(f"{'a branch after 10 turns, ' + branching:34} {1000 * seconds / 200:8.2f} ms")


def v1(episodes: int, null: int) -> None:
    from test_parity import play, reply
    from upstream_reference import run_episodes

    import llenvs
    from llenvs_verifiers_v1.relay import ID, register

    register()
    for name, seat in (("v1_doubler", "agent"), ("v1_guesser", "player")):
        for harness, count in (("null", null), (ID, 50)):
            if not count:
                continue
            run_episodes(name, reply, 1, harness=harness, seat=seat)  # warm: it may install a program
            theirs, done = spent(
                lambda n=name, h=harness, s=seat, c=count: run_episodes(
                    n, reply, c, harness=h, seat=s, concurrency=4, num_tasks=c
                )
            )
            rewards = [sum(trace.reward for trace in episode.traces) for episode in done]
            for mode in ("episode", "auto") if name == "v1_doubler" else ("episode",):
                with llenvs.make(f"verifiers_v1/{name}", mode=mode, taskset_params={"num_tasks": count}) as env:
                    play(env, 0)
                    ours, results = spent(lambda env=env, count=count: [play(env, i) for i in range(count)])
                same = [r.rewards["total_reward"].reward for r in results]
                kind = "upstream's null" if harness == "null" else "relay over HTTP"
                show(f"{name}, {kind}, {env.spec.metadata['mode']}", count, theirs, ours)
                print(f"{'':34} {sum(map(float.__eq__, same, rewards))} of {count} rewards are the same")
                assert same == rewards
    with llenvs.make("verifiers_v1/v1_doubler", taskset_params={"num_tasks": episodes}) as env:
        play(env, 0)
        ours, _ = spent(lambda: [play(env, i) for i in range(episodes)])
        print(f"{'in place':34} {1000 * ours / episodes:8.2f} ms a rollout")
    replays()


def replays() -> None:
    """A branch from a state of some turns, by replay into a new episode."""
    import llenvs
    from llenvs import Action

    for turns in (0, 1, 3):
        with llenvs.make("verifiers_v1/v1_guesser", max_live=1, env_params={"player": {"max_turns": 9}}) as env:
            state, _ = env.reset(options={"task_index": 0})
            for _ in range(turns):
                state = env.step(state, Action("hmm")).next_state
            env.step(state, Action("hmm"))
            began = time.perf_counter()
            seconds, _ = spent(lambda env=env, state=state: [env.step(state, Action("hmm")) for _ in range(20)])
            wall = (time.perf_counter() - began) / 20
            print(
                f"{f'a branch after {turns} turns':34} {1000 * seconds / 20:8.2f} ms ({1000 * wall:.0f} ms wall)"
            )


if __name__ == "__main__":
    main()
