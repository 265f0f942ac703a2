"""Search over states: it finds what greedy play misses, and spends what it may."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from llenvs import Action, Environment, EnvironmentSpec, Observation, Signal, State
from llenvs.core.environment import Advance, Start
from llenvs.core.errors import EpisodeOver, InvalidOption
from llenvs.core.search import Budget, SearchResult, beam_search, best_of_n, mcts

SECRET = "baabab"


class Safe(Environment[str]):
    """Dial letters. The right ones are worth nothing, the last of them 10; a wrong one ends it, a `c` for 1."""

    def __init__(self, max_steps: int | None = 12) -> None:
        super().__init__(EnvironmentSpec("safe", "kit", max_steps=max_steps, is_multi_turn=True))
        self.stepped = 0

    @property
    def num_tasks(self) -> int:
        return 1

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation("dial"), "")

    def _advance(self, state: State[str], action: Action) -> Advance:
        self.stepped += 1
        dialled = state.hidden + action.text
        over = action.text == "c" or not SECRET.startswith(dialled) or dialled == SECRET
        return Advance(Observation(dialled), dialled, terminated=over)

    def _signals(self, state: State[str], action: Action, next_state: State[str]) -> Iterable[Signal]:
        won = 10.0 if next_state.hidden == SECRET else 0.0
        return [Signal("loot", reward=won + (1.0 if action.text == "c" else 0.0))]


def letters(state: State[Any]) -> list[Action | str | tuple[Action | str, float]]:
    return ["c", "a", Action("b")]


def progress(state: State[Any]) -> float:
    return len(state.hidden) / 10


@pytest.fixture
def env() -> Safe:
    return Safe()


def begin(env: Safe) -> State[Any]:
    return env.reset(seed=0)[0]


def dialled(result: SearchResult) -> str:
    return "".join(action.text for action in result.trajectory.actions)


def test_greedy_play_takes_the_coin(env: Safe) -> None:
    state = begin(env)
    best = max(letters(state), key=lambda a: env.step(state, Action(str(getattr(a, "text", a)))).rewards.total)
    assert best == "c"


def test_mcts_opens_the_safe(env: Safe) -> None:
    found = mcts(env, begin(env), letters, budget=Budget(steps=300))
    assert (dialled(found), found.score) == (SECRET, 10.0)
    assert [s.visits for s in found.root] == sorted((s.visits for s in found.root), reverse=True)
    assert {s.action.text for s in found.root} == {"a", "b", "c"}
    assert {s.action.text: s.mean_return for s in found.root}["c"] == 1.0
    again = mcts(env, begin(env), letters, budget=Budget(steps=300))
    assert (again.trajectory, again.root) == (found.trajectory, found.root)


def test_mcts_with_rollouts_values_and_priors(env: Safe) -> None:
    def random_letter(state: State[Any], rng: random.Random) -> str:
        return rng.choice("ab")

    by_rollouts = mcts(env, begin(env), letters, budget=Budget(steps=2000), rollout=random_letter)
    assert dialled(by_rollouts) == SECRET
    by_value = mcts(env, begin(env), letters, budget=Budget(steps=100), value=progress)
    assert dialled(by_value) == SECRET

    def knowing(state: State[Any]) -> list[tuple[str, float]]:
        return [(letter, 98.0 if letter == SECRET[len(state.hidden)] else 1.0) for letter in "cab"]

    by_priors = mcts(env, begin(env), knowing, budget=Budget(steps=6))
    assert dialled(by_priors) == SECRET
    assert by_priors.steps == 6


def test_mcts_ends_when_it_knows_the_whole_tree(env: Safe) -> None:
    found = mcts(env, begin(env), letters, budget=Budget(steps=10**6))
    assert (found.steps, found.exhausted) == (3 * len(SECRET), False)
    shallow = mcts(env, begin(env), letters, budget=Budget(steps=10**6), max_depth=2)
    assert (shallow.steps, dialled(shallow)) == (6, "c")


def test_a_discount_prefers_the_coin(env: Safe) -> None:
    found = mcts(env, begin(env), letters, budget=Budget(steps=10**6), discount=0.5)
    means = {s.action.text: s.mean_return for s in found.root}
    assert 0 < means["b"] < means["c"] == 1.0  # 10 / 2**5 at most, and coins on the way
    assert found.root[0].action.text == "c"


def test_best_of_n_keeps_the_best(env: Safe) -> None:
    def dial(state: State[Any], rng: random.Random) -> str:
        return rng.choice("ab")

    found = best_of_n(env, begin(env), dial, n=200)
    assert (dialled(found), found.score) == (SECRET, 10.0)
    assert len(found.candidates) == 199
    assert found.candidates[-1][0] == 0.0
    one = best_of_n(env, begin(env), dial, n=1)
    assert dialled(one) == dialled(best_of_n(env, begin(env), dial, n=1))
    assert len({dialled(best_of_n(env, begin(env), dial, n=1, seed=s)) for s in range(20)}) > 1


def test_best_of_n_judges_what_was_cut_off_by_its_value(env: Safe) -> None:
    def dial(state: State[Any], rng: random.Random) -> str:
        return rng.choice("abc")

    cut = best_of_n(env, begin(env), dial, n=100, max_depth=2, value=lambda s: 5.0)
    assert (dialled(cut), cut.score) == (SECRET[:2], 5.0)


def test_beam_search_opens_the_safe_with_room_or_with_a_value(env: Safe) -> None:
    wide = beam_search(env, begin(env), letters, width=3, max_depth=12)
    assert (dialled(wide), wide.score) == (SECRET, 10.0)
    guided = beam_search(env, begin(env), letters, width=1, max_depth=12, value=lambda s: 2.0)
    assert dialled(guided) == SECRET


def test_beam_search_follows_equal_states_once() -> None:
    class Corridor(Safe):
        def _advance(self, state: State[str], action: Action) -> Advance:
            self.stepped += 1
            place = str(max(0, int(state.hidden or "0") + (1 if action.text == "a" else -1)))
            return Advance(Observation(place), place)

        def _signals(self, state: State[str], action: Action, next_state: State[str]) -> Iterable[Signal]:
            return [Signal("here", reward=1.0 if next_state.hidden == "5" else 0.0)]

    env = Corridor()
    found = beam_search(env, begin(env), lambda s: ["b", "a"], width=2, max_depth=6, key=lambda s: s.hidden or "0")
    assert dialled(found) == "aaaaa"
    assert env.stepped <= 2 * 6
    blind = Corridor()
    assert beam_search(blind, begin(blind), lambda s: ["b", "a"], width=2, max_depth=6).score == 0.0


@pytest.mark.parametrize("steps", [1, 2, 7, 50])
def test_no_search_takes_more_steps_than_it_may(steps: int) -> None:
    def dial(state: State[Any], rng: random.Random) -> str:
        return SECRET[len(state.hidden)]

    budget = Budget(steps=steps)
    for search in (
        lambda env: best_of_n(env, begin(env), dial, n=20, budget=budget),
        lambda env: beam_search(env, begin(env), letters, width=9, max_depth=12, budget=budget),
        lambda env: mcts(env, begin(env), letters, budget=budget),
        lambda env: mcts(env, begin(env), letters, budget=budget, rollout=dial),
    ):
        env = Safe()
        found = search(env)
        assert found.steps == env.stepped <= steps
        assert found.exhausted == (env.stepped == steps)


def test_time_ends_a_search(env: Safe) -> None:
    endless = Safe(max_steps=None)
    found = best_of_n(
        endless, begin(endless), lambda s, r: SECRET[len(s.hidden)], n=10**9, budget=Budget(seconds=0.05)
    )
    assert found.exhausted
    assert found.seconds >= 0.05
    assert found.score == 10.0


def test_wrong_arguments_are_named(env: Safe) -> None:
    state = begin(env)
    with pytest.raises(InvalidOption, match=r"budget\.steps"):
        Budget(steps=0)
    with pytest.raises(InvalidOption, match="budget: must bound steps or seconds"):
        mcts(env, state, letters, budget=Budget())
    with pytest.raises(InvalidOption, match="discount"):
        mcts(env, state, letters, budget=Budget(steps=1), discount=0)
    with pytest.raises(InvalidOption, match="exploration"):
        mcts(env, state, letters, budget=Budget(steps=1), exploration=-1)
    with pytest.raises(InvalidOption, match="n: must be a positive integer"):
        best_of_n(env, state, lambda s, r: "a", n=0)
    with pytest.raises(InvalidOption, match="width"):
        beam_search(env, state, letters, width=0, max_depth=1)
    with pytest.raises(InvalidOption, match="a prior must be a finite number"):
        mcts(env, state, lambda s: [("a", -1.0)], budget=Budget(steps=1))
    endless = Safe(max_steps=None)
    with pytest.raises(InvalidOption, match="episodes of kit/safe have no bound"):
        best_of_n(endless, begin(endless), lambda s, r: "a", n=1)
    end = env.step(state, Action("c")).next_state
    with pytest.raises(EpisodeOver):
        mcts(env, end, letters, budget=Budget(steps=1))


def test_no_proposals_end_a_branch(env: Safe) -> None:
    found = mcts(env, begin(env), lambda s: [], budget=Budget(steps=5))
    assert (len(found.trajectory), found.root, found.steps) == (0, (), 0)
