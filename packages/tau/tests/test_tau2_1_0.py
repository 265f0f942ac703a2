"""tau2 1.0 from git, where it is what is installed: the same measures, and the domain it has besides."""

from __future__ import annotations

from typing import Any

import pytest
from tau_play import HAS_BANKING, with_references

from llenvs.testing import check_environment

pytestmark = pytest.mark.skipif(not HAS_BANKING, reason="needs tau2 1.0 from git, and TAU2_DATA_DIR")
Make = Any


@pytest.mark.parametrize(
    ("domain", "tasks", "solved", "nothing"),
    [
        ("airline", 50, 50, 23),
        ("retail", 114, 114, 11),
        ("telecom", 114, 114, 0),
        ("banking_knowledge", 97, 97, 0),
    ],
)
def test_reference_episodes(tau: Make, domain: str, tasks: int, solved: int, nothing: int) -> None:
    options: dict[str, Any] = {"nl_assertions": "skip"}
    if domain == "banking_knowledge":
        options["domain_options"] = {"retrieval_variant": "no_knowledge"}
    env, episodes = with_references(tau, domain, **options)
    got = []
    for index, episode in enumerate(episodes):
        state, _ = env.reset(options={"task_index": index})
        for action in episode.actions:
            result = env.step(state, action)
            state = result.next_state
        got.append(result.rewards["reward"].reward)
    assert (len(got), got.count(1.0)) == (tasks, solved)
    assert [env.noop_reward(index) for index in range(tasks)].count(1.0) == nothing


def test_retail_needs_a_judge(tau: Make) -> None:
    env, episodes = with_references(tau, "retail", size=5)
    for index, episode in enumerate(episodes):
        state, _ = env.reset(options={"task_index": index})
        for action in episode.actions:
            result = env.step(state, action)
            state = result.next_state
        assert "give judge_backend" in result.rewards["reward"].metadata["error"]


def test_documents_of_a_task_are_in_its_policy(tau: Make) -> None:
    options = {
        "user_script": ["Hi", "a", "b"],
        "domain_options": {"retrieval_variant": "golden_retrieval"},
        "size": 2,
    }
    env = tau("banking_knowledge", **options)
    prompts = {env.reset(options={"task_index": i})[0].observation.messages[0].content for i in (0, 1)}
    assert len(prompts) == 2
    check_environment("tau/banking_knowledge", options=options, second_process=False, max_steps=4)
