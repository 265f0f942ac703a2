"""The reference solutions of all tasks of all domains, and what nothing at all is worth.

The numbers are those that the upstream's own evaluator gives.
"""

from __future__ import annotations

from typing import Any

import pytest
from tau_play import wheel_only, with_references

pytestmark = wheel_only
Make = Any
NOOP_AIRLINE = [str(i) for i in (0, 1, 4, 5, 6, 10, 13, 26, 28, 31, 34, 36, 41, 43, 45, 46, 47, 48, 49)]
NOOP_RETAIL = ["10", "12", "25", "50", "57", "65", "105"]


def rewards(env: Any, episodes: list[Any]) -> list[float | None]:
    found = []
    for index, episode in enumerate(episodes):
        state, _ = env.reset(options={"task_index": index})
        for action in episode.actions:
            result = env.step(state, action)
            state = result.next_state
        assert result.terminated
        found.append(result.rewards["reward"].reward)
    return found


@pytest.mark.parametrize(
    ("domain", "options", "tasks", "told", "not_told"),
    [
        ("mock", {}, 9, 8, 7),
        ("airline", {}, 50, 50, 44),
        ("retail", {}, 114, 114, 76),
        ("telecom", {}, 114, 114, 114),
        ("telecom-workflow", {}, 114, 114, 114),
        ("telecom", {"user": "solo"}, 114, 114, 114),
        ("mock", {"user": "solo"}, 7, 7, 6),
    ],
)
def test_reference_episodes(tau: Make, domain: str, options: Any, tasks: int, told: int, not_told: int) -> None:
    env, episodes = with_references(tau, domain, **options)
    got = rewards(env, episodes)
    assert (len(got), got.count(1.0)) == (tasks, told)
    assert got.count(0.0) == tasks - told
    if told != not_told:
        env, episodes = with_references(tau, domain, tell=False, **options)
        assert rewards(env, episodes).count(1.0) == not_told


def test_a_reference_episode_that_is_cut_off_is_worth_nothing(tau: Make) -> None:
    for domain in ("mock", "airline", "telecom"):
        env, episodes = with_references(tau, domain, max_steps=1)
        for index, episode in enumerate(episodes):
            if len(episode.actions) > 1:
                result = env.step(env.reset(options={"task_index": index})[0], episode.actions[0])
                assert (result.truncated, result.terminated, result.rewards.total) == (True, False, 0.0)
                assert result.rewards["db"].reward is not None


@pytest.mark.parametrize(
    ("domain", "options", "noop"),
    [
        ("airline", {}, NOOP_AIRLINE),
        ("retail", {}, NOOP_RETAIL),
        ("telecom", {}, []),
        ("telecom-workflow", {}, []),
        ("mock", {}, ["create_task_1_nl_eval"]),
    ],
)
def test_doing_nothing(tau: Make, domain: str, options: Any, noop: list[str]) -> None:
    env = tau(domain, user_script=["###STOP###"], **options)
    from llenvs import Action

    got = {}
    for index, task in enumerate(env.task_ids):
        result = env.step(env.reset(options={"task_index": index})[0], Action("###STOP###"))
        got[task] = result.rewards["reward"].reward
        assert env.noop_reward(index) == got[task]
    assert [task for task, reward in got.items() if reward == 1.0] == noop
    ungraded = [task for task, reward in got.items() if reward is None]
    assert ungraded == (["create_task_1_with_env_assertions"] if domain == "mock" else [])


def test_tasks_that_are_solved_by_doing_nothing_can_be_left_out(tau: Make) -> None:
    env = tau("airline", user="instructions", exclude_noop_tasks=True)
    assert len(env) == 31
    assert not set(env.task_ids) & set(NOOP_AIRLINE)
