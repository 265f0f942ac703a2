"""Search beats greedy play: on Zork I, with one-step lookahead and as many steps of the game."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Any

from jericho_play import counts

from llenvs import Action, State
from llenvs.core.search import Budget, beam_search, mcts
from llenvs_jericho.environment import JerichoEnvironment

Game = Callable[..., JerichoEnvironment]
COMMANDS = (
    *("north", "south", "east", "west", "up", "down", "open window", "enter house", "climb tree", "take egg"),
    *("open mailbox", "take lamp", "take sword", "move rug", "open trap door", "turn on lamp"),
)


def propose(state: State[Any]) -> tuple[str, ...]:
    return COMMANDS


def place(state: State[Any]) -> Hashable:
    return state.metadata.info["location"], counts(state)[0], state.observation.prompt


def greedy(env: JerichoEnvironment, state: State[Any], seed: int) -> tuple[int, int]:
    """Always the command that gains most now, chance among equals: score at the end, and steps taken."""
    rng, taken = random.Random(seed), 0
    while not state.is_terminal:
        tried = [env.step(state, Action(command)) for command in COMMANDS]
        taken += len(tried)
        most = max(r.rewards.total for r in tried)
        state = rng.choice([r for r in tried if r.rewards.total == most]).next_state
    return counts(state)[0], taken


def test_search_beats_greedy_play_at_the_same_expense(game: Game) -> None:
    env = game("zork1-r119", max_steps=40)
    state, _ = env.reset(seed=1)
    scores, spent = zip(*(greedy(env, state, seed) for seed in range(4)), strict=True)
    beam = beam_search(env, state, propose, width=16, max_depth=40, key=place, budget=Budget(steps=sum(spent)))
    assert max(scores) < beam.score == 15.0
    assert counts(beam.trajectory.final_state)[0] == 15

    tree = mcts(
        env,
        state,
        propose,
        budget=Budget(steps=spent[0] + spent[1]),
        rollout=lambda s, rng: rng.choice(COMMANDS),
    )
    assert max(scores[:2]) < tree.score == 10.0
    replayed = state
    for action in tree.trajectory.actions:
        replayed = env.step(replayed, action).next_state
    assert replayed == tree.trajectory.final_state
