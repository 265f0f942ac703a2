"""Playing, by the upstream alone and through the adapter."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

from llenvs import Action, State
from llenvs.core.environment import Environment, StepResult
from llenvs.core.tools import ToolCall

Calls = list[tuple[str, dict[str, Any]]]


def data_folder() -> Path:
    """Where the data is, or would be."""
    beside = Path(__file__).parents[4] / "shared" / "data" / "aviary"
    return Path(os.environ.get("LLENVS_AVIARY_DATA") or beside)


def act(*calls: tuple[str, dict[str, Any]], text: str = "") -> Action:
    """An action with these calls."""
    return Action(text, tuple(ToolCall(name, given, f"call_{i}") for i, (name, given) in enumerate(calls)))


def call(name: str, **arguments: Any) -> Action:
    """An action with one call."""
    return act((name, arguments))


def begin(env: Environment[Any], task_index: int, seed: int = 0) -> State[Any]:
    """The first state of a task."""
    return env.reset(seed=seed, options={"task_index": task_index})[0]


def answers(result: StepResult) -> list[str]:
    """What the tools answered, in the order of the calls."""
    return [each.content for each in result.next_state.observation.tool_results]


def reward(result: StepResult) -> float:
    """The upstream's own."""
    value = result.rewards["reward"].reward
    assert value is not None
    return value


def played(env: Environment[Any], task_index: int, actions: list[Action]) -> list[StepResult]:
    """The results of `actions` in a row, up to the end of the episode."""
    state, results = begin(env, task_index), []
    for action in actions:
        if state.is_terminal:
            break
        results.append(env.step(state, action))
        state = results[-1].next_state
    return results


Shown = tuple[list[tuple[str, str, str | None]], float, bool]
"""Messages as (role, content, id of the call), reward, end."""


def alone(env: Any, actions: list[Action]) -> list[Shown]:
    """What the upstream's own object shows: at its reset, then for each action."""
    from aviary.core import Message, ToolCall, ToolCallFunction, ToolRequestMessage

    def shown(messages: Any, reward: float, done: bool) -> Shown:
        # answers to calls in the order of their ids, then what else was said
        said = [(m.role, m.content or "", getattr(m, "tool_call_id", None)) for m in messages]
        return sorted(said, key=lambda each: (each[2] is None, each[2] or "")), float(reward), bool(done)

    async def play() -> list[Shown]:
        messages, _ = await env.reset()
        seen = [shown(messages, 0.0, False)]
        for action in actions:
            if seen[-1][2]:
                break
            calls = [
                ToolCall(id=c.id, function=ToolCallFunction(name=c.name, arguments=dict(c.arguments)))
                for c in action.tool_calls
            ]
            message = (
                ToolRequestMessage(content=action.text or None, tool_calls=calls)
                if calls
                else Message(role="assistant", content=action.text)
            )
            got, reward, done, _ = await env.step(message)
            seen.append(shown(got, reward, done))
        await env.close()
        return seen

    return asyncio.run(play())


def ours(env: Environment[Any], task_index: int, actions: list[Action]) -> list[Shown]:
    """The same of the adapter."""
    state = begin(env, task_index)
    seen: list[Shown] = [([("user", state.observation.prompt, None)], 0.0, False)]
    for result in played(env, task_index, actions):
        observation = result.next_state.observation
        said: list[tuple[str, str, str | None]] = [
            ("tool", each.content, each.call_id) for each in observation.tool_results
        ]
        if observation.prompt:
            said.append(("user", observation.prompt, None))
        seen.append((said, reward(result), result.terminated))
    return seen


def calculating(rng: random.Random, gold: float) -> list[Action]:
    """Actions of a GSM8K episode of some kind: right, wrong, broken, or only talk."""
    a, b = rng.randrange(1, 100), rng.randrange(1, 100)
    actions = [call("calculator", expr=f"{a}*{b}-{b}") for _ in range(rng.randrange(3))]
    if rng.random() < 0.3:
        actions.append(Action("Let me think."))
    if rng.random() < 0.2:
        actions.append(act(("calculator", {"expr": f"{a}/7"}), ("calculator", {"expr": "round(2.5)"})))
    last = rng.choice(["right", "right", "wrong", "words", "broken", "unknown", "mixed"])
    actions.append(
        {
            "right": call("submit_answer", answer=f"{gold:g}"),
            "wrong": call("submit_answer", answer=str(gold + a)),
            "words": call("submit_answer", answer=f"${gold:g}"),
            "broken": call("calculator", expr=f"{a}/(3-3)"),
            "unknown": call("guess", answer="1"),
            "mixed": act(("guess", {"x": 1}), ("submit_answer", {"answer": f"{gold:g}"})),
        }[last]
    )
    return actions


WORDS = ("Ardenia", "Ardena", "Tamsin Orrel", "Halden Viaduct", "Mercury", "Port Lume", "Ostrel")
KEYWORDS = ("capital", "river", "viaduct", "is", "nothing of the kind", "Ostrel")


def searching(rng: random.Random, gold: str) -> list[Action]:
    """Actions of a HotPotQA episode of some kind."""
    actions = []
    for _ in range(rng.randrange(1, 6)):
        search, look = ("search", {"entity": rng.choice(WORDS)}), ("lookup", {"keyword": rng.choice(KEYWORDS)})
        actions.append(rng.choice([act(search), act(look), act(look), act(search, look), Action("Hm.")]))
        if rng.random() < 0.1:
            actions.append(call("browse", url="x"))
    answer = rng.choice([gold, gold, f"It is {gold}.", "I do not know", ""])
    actions.append(call("submit_answer", answer=answer))
    return actions


def telling(rng: random.Random) -> list[Action]:
    """Actions of an episode of the environment for trying out; none of chance."""
    some = [
        call("cast_float", x=str(rng.random())),
        call("cast_int", x=rng.random() * 100),
        act(("cast_int", {"x": 5.6}), ("cast_float", {"x": "7"})),
        Action("Once upon a time"),
        call("no_such_tool"),
    ]
    actions = [rng.choice(some) for _ in range(rng.randrange(5))]
    return [*actions, call("print_story", story="a frog sat and sang"), rng.choice(some)]
