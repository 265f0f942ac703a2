"""GEM: what a step, a branch and 20,000 kept states cost beside the upstream alone.

Needs llenvs-gem in its own environment, and for games of words the NLTK corpus `words` (NLTK_DATA, or the
folder shared/data/gem beside the checkout). Targets: forward at most 100 us a step over the upstream; a branch
from step 40 at most 1 ms, beside replay from the start and the upstream's own deepcopy; 20,000 states of 200
episodes bounded, 500 of them step to the recorded result.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))  # this file has the name of the upstream's package, which must be found first

from measure import kept, least, print_forward, timed, us, walked

import llenvs
from llenvs import Action, State
from llenvs_gem.catalogue import ENTRIES, Kind, Needs
from llenvs_gem.upstream import module

SHARED = Path(__file__).parents[2] / "shared" / "data" / "gem" / "nltk_data"
BRANCHED = ("game:Game2048-v0-extreme-hard", "game:Minesweeper-v0-hard", "game:Sudoku-v0-hard")
SEED = 42


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 rounds, 20 episodes")
    args = parser.parse_args()
    rounds, episodes = (3, 20) if args.quick else (args.rounds, 200)
    if "NLTK_DATA" not in os.environ and SHARED.is_dir():
        os.environ["NLTK_DATA"] = str(SHARED)
    forward(rounds)
    for id in BRANCHED:
        branches(id, rounds)
    for id in ("game:Game2048-v0-extreme-hard", "game:Minesweeper-v0-random"):
        with llenvs.make(f"gem/{id}") as env:
            print(id)
            kept(env, lambda state, rng, id=id: Action(move(id, rng)), episodes=episodes)
    questions(rounds)


def move(id: str, rng: random.Random) -> str:
    """A move that the game can read, and that keeps it going."""
    cell = f"{rng.randrange(8)} {rng.randrange(8)}"
    match id.partition(":")[2].partition("-")[0]:
        case "GuessTheNumber":
            text = str(rng.randrange(1, 51))
        case "Mastermind":
            text = " ".join(map(str, rng.sample(range(1, 9), 4)))
        case "Minesweeper":
            text = f"{'reveal' if rng.random() < 0.2 else 'flag'} {cell}"
        case "Wordle" | "Hangman":
            text = rng.choice(("water", "apple", "house", "cat", "dog", "e", "s", "t"))
        case "Sudoku":
            text = " ".join(str(rng.randrange(1, 10)) for _ in range(3))
        case "TowerofHanoi":
            text = f"{rng.choice('ABC')} {rng.choice('ABC')}"
        case "Crosswords":
            text = f"{cell} {rng.choice('ETAOINSRHL')}"
        case "WordSearch":
            text = f"{cell} {cell}"
        case _:
            text = rng.choice(["up", "down", "left", "right"])
    return f"\\boxed{{{text}}}"


def upstream_of(id: str) -> Any:
    module("gem.envs")
    return module("gem").make(id)


def forward(rounds: int) -> None:
    """Every game but the hard Sokoban, whose boards take the upstream minutes."""
    corpus = "NLTK_DATA" in os.environ
    over = []
    for entry in ENTRIES.values():
        usable = entry.needs is Needs.NOTHING or (entry.needs is Needs.CORPUS and corpus)
        slow = entry.id.startswith("game:Sokoban") and not entry.id.endswith("easy")
        if entry.kind is not Kind.GAME or not usable or slow:
            continue
        if entry.needs is Needs.CORPUS:
            quiet_nltk()
        theirs, alone, ours = upstream_of(entry.id), [], []
        with llenvs.make(f"gem/{entry.id}") as env:
            actions = moves(env, entry.id)
            for _ in range(rounds):
                theirs.reset(seed=SEED)
                alone.append([timed(partial(theirs.step, action.text)) for action in actions])
                ours.append(walked(env, actions, seed=0))
        over.append(least(ours) - least(alone))
        print(f"{entry.id:36} {len(actions):3} steps  ", end="")
        print_forward(alone, ours)
    print(
        f"overhead      {statistics.median(over):.0f} us in the median over the games, {max(over):.0f} us at most"
    )


def moves(env: Any, id: str) -> list[Action]:
    """Moves of an episode that is as long as one of ten tries."""
    best: list[Action] = []
    for seed in range(10):
        rng, taken = random.Random(seed), []
        state, _ = env.reset(options={"task_index": 0})
        while not state.is_terminal:
            taken.append(Action(move(id, rng)))
            state = env.step(state, taken[-1]).next_state
        best = max(best, taken, key=len)
    return best


def quiet_nltk() -> None:
    """The upstream's constructors download, which is not what is measured."""
    import nltk

    nltk.download = lambda *args, **kwargs: True


def branches(id: str, rounds: int) -> None:
    """From step 40, another action, while the game stands at the end of the episode."""
    theirs = upstream_of(id)
    with llenvs.make(f"gem/{id}") as env:
        actions = moves(env, id)
        states = [env.reset(options={"task_index": 0})[0]]
        for action in actions:
            states.append(env.step(states[-1], action).next_state)
        depth = min(40, len(actions) - 1)
        there, then = states[depth], actions[depth]
        theirs.reset(seed=SEED)
        for action in actions[:depth]:
            theirs.step(action.text)
        saved, chance = copy.deepcopy(theirs), random.getstate()

        def by_deepcopy() -> None:
            game = copy.deepcopy(saved)
            random.setstate(chance)
            game.step(then.text)

        def by_replay() -> None:
            theirs.reset(seed=SEED)
            for action in actions[:depth]:
                theirs.step(action.text)
            theirs.step(then.text)

        text = there.to_json()
        env.step(states[-2], actions[-1])
        ours, jsons = [], []
        for _ in range(30 * rounds):
            env.step(states[1], actions[1])  # somewhere else
            ours.append(timed(lambda: env.step(there, then)))
            jsons.append(timed(lambda: env.step(State.from_json(text), then)))
        native = [timed(by_deepcopy) for _ in range(30 * rounds)]
        replay = [timed(by_replay) for _ in range(10 * rounds)]
    print(
        f"{id:36} branch at {depth}: ours {us(ours)}   from JSON {us(jsons)}   "
        f"deepcopy and random state {us(native)}   replay {us(replay)}   state as JSON {len(text):,} bytes"
    )


def questions(rounds: int) -> None:
    """One answer: the upstream's scorer in this process beside ours in a worker process."""
    theirs = upstream_of("rg:leg_counting")
    theirs.reset()
    with llenvs.make("gem/rg:leg_counting") as env:
        state, _ = env.reset(options={"task_index": 0})
        action = Action("\\boxed{100}")
        env.step(state, action)
        count = 50 * rounds
        alone = [timed(lambda: theirs.step(action.text)) for _ in range(count)]
        ours = [timed(lambda: env.step(state, action)) for _ in range(count)]
    print(f"rg:leg_counting   upstream {us(alone)}   ours, scored in a worker {us(ours)}")


if __name__ == "__main__":
    main()
