"""Episodes beside the upstream's own orchestrator and evaluator: same messages, same end, same reward and parts.

A sample; ``benchmarks/tau.py`` does it for all tasks.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tau_play import call
from upstream_alone import plain, run_alone

from llenvs import Action
from llenvs_tau.environment import TauEnvironment

Make = Any


def compare(env: TauEnvironment, index: int, actions: list[Action], script: list[Any], **limits: int) -> str:
    """Play the episode in both; the end that it had."""
    solo = env._domain.solo
    state, _ = env.reset(options={"task_index": index})
    taken = 0
    for action in actions:
        result = env.step(state, action)
        state, taken = result.next_state, taken + 1
        if result.done:
            break
    theirs = run_alone(env._domain.name, env._tasks[index], actions, script, solo=solo, **limits)
    simulator = next(iter(env._cache._idle.values())).simulator
    assert plain(simulator._dialogue.messages) == theirs.messages  # type: ignore[attr-defined]
    assert (result.info["termination_reason"], result.rewards["reward"].reward) == (
        theirs.reason,
        theirs.info.reward,
    )
    if theirs.info.db_check is not None:
        ours = result.rewards
        met = {name: ours[name].metadata.get("met", []) for name in ("env_assertion", "action", "communicate")}
        assert {"db": ours["db"].reward, **met} == theirs.parts
    return theirs.reason


@pytest.mark.parametrize(
    ("domain", "tasks", "options"),
    [
        ("mock", range(9), {}),
        ("retail", (2, 57), {}),
        ("airline", (8,), {}),
        ("telecom", (0, 40, 77, 113), {}),
        ("telecom-workflow", (5, 60), {}),
        ("telecom", (0, 40), {"user": "solo"}),
        ("mock", (0, 3, 5), {"user": "solo"}),
    ],
)
def test_reference_episodes(tau: Make, domain: str, tasks: Any, options: Any) -> None:
    source = tau(domain, max_live=1, **(options or {"user": "instructions"}))
    for index in tasks:
        episode = source.reference_episode(index)
        script = list(episode.user_script)
        env = source if options else tau(domain, user_script=script, max_live=1)
        compare(env, index, list(episode.actions), script)


@pytest.mark.parametrize("domain", ["mock", "telecom", "retail"])
def test_random_episodes_up_to_the_limits(tau: Make, domain: str) -> None:
    """Calls of any task's solution, wrong calls, several at once, talk; users that call tools; low limits."""
    rng = random.Random(domain)
    source = tau(domain, user="instructions")
    solutions = [source.reference_episode(i) for i in range(min(len(source), 20))]
    calls = [a.tool_calls[0] for e in solutions for a in e.actions if a.tool_calls]
    replies = [r for e in solutions for r in e.user_script if r != "###STOP###"]
    ends = set()
    for number in range({"mock": 40, "telecom": 25, "retail": 4}[domain]):
        actions = [_random_action(rng, calls) for _ in range(30)] + [Action("###STOP###")]
        script = [rng.choice(replies) for _ in range(rng.randrange(1, 8))]
        limits = {"max_steps": rng.choice([3, 8, 9, 200]), "max_errors": rng.choice([1, 3, 10])}
        env = tau(
            domain,
            user_script=script,
            max_live=1,
            max_messages=limits["max_steps"],
            max_errors=limits["max_errors"],
        )
        index = number % min(len(source), 20)
        if source.task_ids[index] == "create_task_1_with_env_assertions":
            continue  # which the upstream cannot grade unless the record was made
        ends.add(compare(env, index, actions, script, **limits))
    assert domain == "retail" or ends >= {"user_stop", "max_steps", "too_many_errors"}


def _random_action(rng: random.Random, calls: list[Any]) -> Action:
    kind = rng.random()
    if kind < 0.2:
        return Action("Let me see.")
    if kind < 0.3:
        return call("no_such_tool", x=1)
    if kind < 0.4:
        return call(rng.choice(calls).name, no_such_argument=1)
    if kind < 0.5:
        chosen = rng.sample(calls, 2)
        return Action("", tuple(replace(c, id=f"call_{i}") for i, c in enumerate(chosen)))
    return Action(tool_calls=(rng.choice(calls),))
