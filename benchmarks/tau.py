"""tau: every reference solution and doing nothing, graded by us and by the upstream alone; what a step costs.

Needs llenvs-tau; nothing is downloaded. Targets: the same rewards everywhere; all reference solutions of airline,
retail and telecom are worth 1.0; parity of whole episodes (messages, end, reward, parts) with the upstream's own
orchestrator; reset under 5 ms and a step about 1 ms once the domain is loaded.

Times are CPU times, which other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llenvs
from llenvs import Action
from llenvs_tau.upstream import upstream

sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "tau" / "tests"))

from test_parity import _random_action, compare
from upstream_alone import run_alone

DOMAINS = ("mock", "airline", "retail", "telecom", "telecom-workflow")
SOLO = ("mock", "telecom")
STOP = Action("###STOP###")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domains", nargs="*", default=list(DOMAINS))
    parser.add_argument("--episodes", type=int, default=50, help="random episodes of each domain for parity")
    args = parser.parse_args()
    print("upstream", *upstream().release)
    for domain in args.domains:
        sweep(domain)
        if domain in SOLO:
            sweep(domain, user="solo")
        parity(domain, args.episodes)
        speed(domain)


def sweep(domain: str, **options: Any) -> None:
    """All tasks: the reference solution, and nothing at all; ours beside the upstream's own run and evaluator."""
    source = llenvs.make(f"tau/{domain}", **(options or {"user": "instructions"}))
    episodes = [source.reference_episode(i) for i in range(len(source))]
    script = {source.task_ids[i]: list(e.user_script) for i, e in enumerate(episodes)}
    env = source if options else llenvs.make(f"tau/{domain}", user_script=script)
    ours, theirs, spent = [], [], [0.0, 0.0]
    for index, episode in enumerate(episodes):
        for actions, replies in ((episode.actions, list(episode.user_script)), ((STOP,), ["Hi"])):
            seconds, reward = measured(lambda i=index, a=actions: played(env, i, a))
            ours.append(reward)
            spent[0] += seconds
            seconds, reward = measured(
                lambda i=index, a=actions, r=replies: alone(domain, env._tasks[i], a, r, bool(options))
            )
            theirs.append(reward)
            spent[1] += seconds
    solved = [sum(rewards[0::2][i] == 1.0 for i in range(len(episodes))) for rewards in (ours, theirs)]
    nothing = [sum(rewards[1::2][i] == 1.0 for i in range(len(episodes))) for rewards in (ours, theirs)]
    ungraded = ours.count(None)
    name = f"{domain} {options.get('user', '')}".strip()
    print(
        f"{name:17} {len(episodes):4} tasks: reference 1.0 in {solved[0]} (upstream {solved[1]}), nothing 1.0 in "
        f"{nothing[0]} ({nothing[1]}), {sum(a == b for a, b in zip(ours, theirs, strict=True))} of {len(ours)} "
        f"rewards equal, {ungraded} that the upstream cannot grade; CPU {spent[0]:.1f} s (upstream "
        f"{spent[1]:.1f} s, {spent[1] / spent[0]:.0f} x)",
        flush=True,
    )
    assert ours == theirs


def played(env: Any, index: int, actions: Any) -> float | None:
    state, _ = env.reset(options={"task_index": index})
    for action in actions:
        result = env.step(state, action)
        state = result.next_state
    reward: float | None = result.rewards["reward"].reward
    return reward


def alone(domain: str, task: Any, actions: Any, replies: list[Any], solo: bool) -> float | None:
    try:
        reward: float = run_alone(domain, task, actions, replies, solo=solo).info.reward
    except ValueError as error:  # an assertion about a record that was never made
        if "not found" not in str(error):
            raise
        return None
    return reward


def parity(domain: str, episodes: int) -> None:
    """Random episodes (calls of any solution, wrong calls, talk; low limits), whole, beside the orchestrator."""
    rng = random.Random(domain)
    source = llenvs.make(f"tau/{domain}", user="instructions")
    solutions = [source.reference_episode(i) for i in range(len(source))]
    calls = [a.tool_calls[0] for e in solutions for a in e.actions if a.tool_calls]
    replies = [r for e in solutions for r in e.user_script if r != "###STOP###"]
    ends: dict[str, int] = {}
    done = 0
    while done < episodes:
        index = rng.randrange(len(source))
        if source.task_ids[index] == "create_task_1_with_env_assertions":
            continue  # which the upstream cannot grade unless the record was made
        actions = [_random_action(rng, calls) for _ in range(40)] + [STOP]
        script = [rng.choice(replies) for _ in range(rng.randrange(1, 12))]
        limits = {"max_steps": rng.choice([9, 30, 200, 200]), "max_errors": rng.choice([3, 10, 100])}
        env = llenvs.make(
            f"tau/{domain}",
            user_script=script,
            max_live=1,
            max_messages=limits["max_steps"],
            max_errors=limits["max_errors"],
        )
        reason = compare(env, index, actions, script, **limits)
        ends[reason] = ends.get(reason, 0) + 1
        done += 1
    print(f"{domain:17} {done} random episodes equal to the upstream's orchestrator; ends: {ends}", flush=True)


def speed(domain: str) -> None:
    """A reset, a step forward, a step from an older state, and the step that is graded."""
    env = llenvs.make(f"tau/{domain}", user_script=["Hi"] * 99, max_messages=10_000, max_errors=10_000)
    tool = Action.from_tool_call(env.available_tools[0].name, {})
    first, _ = env.reset(options={"task_index": 0})
    environment = upstream().registry.get_env_constructor(domain)()
    call = upstream().message.ToolCall(id="c", name=tool.tool_calls[0].name, arguments={})

    def walk() -> None:
        state = first
        for _ in range(20):
            state = env.step(state, tool).next_state

    print(
        f"{domain:17} reset {each(lambda: env.reset(options={'task_index': 0}), 20):.2f} ms, step "
        f"{each(walk, 3) / 20:.2f} ms, branch {each(lambda: env.step(first, tool), 40):.2f} ms, last step "
        f"(graded) {each(lambda: env.step(first, STOP), 10):.2f} ms; upstream: constructor "
        f"{each(upstream().registry.get_env_constructor(domain), 3):.2f} ms, the bare call "
        f"{each(lambda: environment.get_response(call), 40):.3f} ms",
        flush=True,
    )
    print(f"{'':17} {env.stats}")


def each(work: Callable[[], Any], times: int) -> float:
    """Milliseconds of CPU of one call."""
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times * 1e3


def measured(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU, and what came of it."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


if __name__ == "__main__":
    main()
