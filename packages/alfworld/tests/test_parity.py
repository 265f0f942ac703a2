"""Ours beside the upstream alone: texts, commands, facts and goals, also after going somewhere else and back."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from alfworld_play import COOL, LOOK, PLACE, TWO

from llenvs import Action
from llenvs_alfworld.environment import AlfworldEnvironment

Alfworld = Callable[..., AlfworldEnvironment]
STEPS = 12


@pytest.fixture(scope="module")
def upstream() -> Iterator[Callable[[str], Any]]:
    os.environ.setdefault("ALFWORLD_DATA", os.getcwd())  # or importing it makes a folder in the home directory
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld.core import EnvInfos
    from textworld.envs import PddlEnv

    def load(path: str) -> Any:
        env = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True, facts=True)), shuffle=False)
        env.load(path)
        return env

    return load


def _engine(**options: Any) -> Any:
    from llenvs_alfworld.engine import Engine

    known = {
        "lenient": False,
        "expert_plan": False,
        "by_commands": False,
        "max_games": 2,
        "max_game_bytes": 1 << 30,
    }
    return Engine(**{**known, **options})


def _facts(state: Any) -> set[str]:
    return {str(fact) for fact in state.facts}


@pytest.mark.parametrize(
    ("split", "task"), [("train", LOOK), ("train", COOL), ("eval_in_distribution", TWO), ("old", 0)]
)
def test_walks_equal_the_upstreams(
    alfworld: Alfworld, upstream: Callable[[str], Any], legacy_game: str, split: str, task: int
) -> None:
    path = legacy_game if split == "old" else str(alfworld(split).games[task].path)
    rng = random.Random(f"{split}{task}")
    theirs, here, there, replaying = upstream(path), _engine(), _engine(), _engine(by_commands=True)
    state = theirs.reset()
    answer, snapshot = here({"do": "start", "game": path}, b"")
    _, commands = replaying({"do": "start", "game": path}, b"")
    assert (answer["text"], answer["admissible"]) == (state.feedback, state.admissible_commands)
    for number in range(STEPS):
        handling = [c for c in state.admissible_commands if not c.startswith("go to")]
        chosen = handling if rng.random() < 0.6 else state.admissible_commands
        command = "water the plants" if number == 5 else rng.choice(chosen)
        state, _, _ = theirs.step(command)
        request = {"do": "act", "command": command}
        answer, after = here(request, b"")
        # the same from the snapshot alone, where another game (or nothing) was played before
        assert there({**request, "game": path}, snapshot) == (answer, after)
        by_commands, commands = replaying({**request, "game": path}, commands)
        assert by_commands == answer
        assert (answer["text"], answer["admissible"]) == (state.feedback, state.admissible_commands)
        assert answer["won"] == state.won == (answer["goal_conditions"] == 1.0)
        game, elsewhere = here.game(path), there.game(path)
        assert _facts(game._facts) == _facts(elsewhere._facts) == _facts(theirs.unwrapped._pddl_state)
        assert game._differing_in_planner() == set(game._position.differing)
        snapshot = after


def test_games_share_a_planner(alfworld: Alfworld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back in a game where it was left, the planner still has the other one."""
    small, large = (str(alfworld().games[task].path) for task in (PLACE, COOL))
    engine = _engine()
    _, first = engine({"do": "start", "game": small}, b"")
    answer, _ = engine({"do": "start", "game": large}, b"")
    apply, holders = engine._planner.apply, []

    def watched(operator: int) -> None:
        holders.append(engine._planner.holder)
        apply(operator)

    monkeypatch.setattr(engine._planner, "apply", watched)
    request = {"do": "act", "command": "go to tvstand 1", "game": small}
    once, after = engine(request, first)
    assert holders == [engine.game(small)]
    assert engine.game(small)._differing_in_planner() == set(engine.game(small)._position.differing)
    engine({"do": "act", "command": "go to fridge 1", "game": large}, engine.game(large).save())
    assert engine(request, first) == (once, after)
    assert once["admissible"] != answer["admissible"]


@pytest.mark.parametrize("task", [LOOK, TWO])
def test_plans_equal_the_upstreams(alfworld: Alfworld, upstream: Callable[[str], Any], task: int) -> None:
    env = alfworld()
    theirs = upstream(str(env.games[task].path))
    theirs.reset()
    theirs.request_infos.policy_commands = True
    state, _ = env.reset(options={"task_index": task})
    for _ in range(3):  # further on, the upstream's goes on from its state as ours does
        plan = env.expert_plan(state)
        assert plan is not None
        assert list(plan) == theirs.unwrapped._pddl_state.replan(theirs.unwrapped._entity_infos)
        theirs.step(plan[0])
        state = env.step(state, Action(plan[0])).next_state
