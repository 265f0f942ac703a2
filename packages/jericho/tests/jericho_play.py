"""Playing by commands."""

from __future__ import annotations

from typing import Any

from llenvs import Action, State
from llenvs_jericho.environment import JerichoEnvironment


def play(env: JerichoEnvironment, *commands: str, seed: int = 1) -> list[State[Any]]:
    """All states, the first one included."""
    states = [env.reset(seed=seed)[0]]
    for command in commands:
        states.append(env.step(states[-1], Action(command)).next_state)
    return states


def counts(state: State[Any]) -> tuple[int, int]:
    """Score and moves."""
    return state.hidden["truth"]["score"], state.hidden["truth"]["moves"]
