"""The same policy through the upstream's own rollouts and through ours: the same everything."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from conftest import Make
from upstream_reference import evaluate

from llenvs import Action

EPISODES = 50


def reply(chat: list[dict[str, Any]]) -> str | tuple[str, dict[str, Any]]:
    """A policy that is right now and then, by the chat alone."""
    rng = random.Random(repr([(m["role"], m["content"]) for m in chat]))
    first, last = chat[0]["content"] + chat[-1]["content"], chat[-1]
    if "Fetch" in first or (chat[0]["role"] == "user" and "Fetch" in chat[0]["content"]):
        wrong = [("put", {"item": "z"}), ("put", {"thing": 1}), ("nope", {}), "done"]
        return rng.choice([("put", {"item": rng.choice("abcdef")}), *wrong])
    if any("with the tool" in m["content"] for m in chat):
        a, b = re.search(r"(\d+)\+(\d+)", chat[-1]["content"] if len(chat) == 1 else chat[0]["content"]).groups()
        calls = [("add", {"x": int(a), "y": int(b)}), ("div", {"a": 1}), ("div", {"a": 1, "b": 0})]
        text = str(int(a) + int(b)) if rng.random() < 0.6 else "no idea"
        return rng.choice([*calls, text, text])
    if "Guess" in chat[0]["content"]:
        return rng.choice(["3", "7", "9", "5", "hmm"])
    if "goal" in chat[0]["content"]:
        return rng.choice(["r", "r", "r", "l", "jump"])
    found = re.search(r"(\d+)\+(\d+)", last["content"])
    total = 2 * int(found[1]) if found else 0
    return rng.choice([f"<think>so</think><answer>{total}</answer>", f"<answer>{total}</answer>", "0", ""])


def play(env: Any, task_index: int) -> Any:
    state, _ = env.reset(options={"task_index": task_index})
    while True:
        chat = [{"role": m.role, "content": m.content} for m in state.observation.messages]
        said = reply(chat)
        action = Action(said) if isinstance(said, str) else Action.from_tool_call(said[0], said[1])
        result = env.step(state, action)
        if result.done:
            return result
        state = result.next_state


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("vf_sums", {"num_tasks": 50}),
        ("vf_tools", {}),
        ("vf_tools", {"stateful": True}),
        ("vf_guess", {"secrets": tuple(i % 9 + 1 for i in range(50)), "max_turns": 6}),
        ("vf_gym", {}),
        ("vf_mixed", {}),
    ],
)
def test_parity(make: Make, name: str, args: dict[str, Any]) -> None:
    env = make(name, args=args)
    outputs = evaluate(env.upstream, reply, EPISODES)
    assert len(outputs) == min(EPISODES, len(env))
    for task_index, output in enumerate(outputs):
        result = play(env, task_index)
        assert result.rewards["total_reward"].reward == output["reward"], (name, task_index)
        assert result.rewards.total == pytest.approx(output["reward"], abs=1e-12)
        ours = {
            s.name: s.reward
            for s in result.rewards
            if s.name not in ("total_reward", "step_reward") and s.reward is not None
        }
        assert ours == output["metrics"]
        assert result.info["stop_condition"] == output["stop_condition"]
        prompt, messages = output["prompt"], result.next_state.observation.messages
        theirs = [(m["role"], m.get("content") or "") for m in output["completion"]]
        assert [(m.role, m.content) for m in messages[len(prompt) :]] == theirs


def test_parity_of_groups(make: Make) -> None:
    """Three rollouts of each task, scored together by the upstream and by ours."""
    from upstream_reference import PolicyClient

    texts = ["<answer>2</answer>", "2", "it is 2"]
    env = make("vf_sums", args={"group": True, "num_tasks": 4})
    said = iter(texts * 4)
    results = env.upstream.evaluate_sync(
        PolicyClient(lambda chat: next(said)), "m", rollouts_per_example=3, max_concurrent=1
    )
    for task_index in range(4):
        theirs = [o for o in results["outputs"] if o["example_id"] == task_index]
        in_order = [o["completion"][0]["content"] for o in theirs]
        state, _ = env.reset(options={"task_index": task_index})
        bundles = env.score_group([env.step(state, Action(text)).next_state for text in in_order])
        assert [bundle["total_reward"].reward for bundle in bundles] == [o["reward"] for o in theirs]
