"""ALFWorld: what a step, a branch and 20,000 kept states cost beside the upstream alone.

Needs llenvs-alfworld and games (ALFWORLD_DATA, or the folder shared/data/alfworld beside the checkout).
Targets: forward at most 100 us a step over the upstream, and over the same work done in this process (which is a
small part of what the upstream does); a branch from step 40 at most 30 ms; 20,000 states bounded by the cache, 500
of them step to the recorded result; the expert's plan wins every game.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("ALFWORLD_DATA", str(Path(__file__).parents[2] / "shared" / "data" / "alfworld"))

from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from measure import kept, least, print_forward, resident, timed, us, walked
from textworld.core import EnvInfos
from textworld.envs import PddlEnv

import llenvs
from llenvs import Action, State
from llenvs_alfworld.engine import Engine

SPLITS = ("train", "eval_in_distribution", "eval_out_of_distribution")
DATA = os.environ["ALFWORLD_DATA"]
LOOK = Action("look")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="2 rounds of 2 games, 20 episodes, the plans of a split"
    )
    args = parser.parse_args()
    rounds, episodes = (2, 20) if args.quick else (args.rounds, 200)
    plans(SPLITS[:1] if args.quick else SPLITS)
    with llenvs.make("alfworld/train", data_dir=DATA, max_steps=None, max_live=1) as env:
        for task in (1, 4) if args.quick else range(len(env)):
            measured(env, task, rounds)
    with llenvs.make("alfworld/eval_in_distribution", data_dir=DATA, max_steps=None) as env:
        kept(env, wander, episodes=episodes)
        print(f"              memory of the engine processes: {engines(env)}")
    games()


def plans(splits: tuple[str, ...]) -> None:
    won = lengths = 0
    for split in splits:
        with llenvs.make(f"alfworld/{split}", data_dir=DATA, max_live=1) as env:
            for task in range(len(env)):
                state, _ = env.reset(options={"task_index": task})
                for command in env.expert_plan(state):
                    result = env.step(state, Action(command))
                    state = result.next_state
                    lengths += 1
                won += result.terminated
    print(f"expert        its plans win {won} games of {6 * len(splits)}, {lengths} commands in all")
    assert won == 6 * len(splits)


def measured(env: Any, task: int, rounds: int) -> None:
    game = env.games[task]
    print(f"-- {game.task_type}, {len(game.path.read_bytes()):,} bytes")
    upstream = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)
    upstream.load(str(game.path))
    engine = Engine(lenient=False, expert_plan=False, by_commands=False, max_games=1, max_game_bytes=1 << 30)
    states, actions = walk(env, task, 50)
    alone, here, ours, begin = [], [], [], []
    for _ in range(rounds):
        begin.append(timed(upstream.reset))
        alone.append([timed(partial(upstream.step, a.text)) for a in actions])
        engine({"do": "start", "game": str(game.path)}, b"")
        here.append([timed(partial(act, engine, a.text)) for a in actions])
        ours.append(walked(env, actions, seed=0, task_index=task))
    print_forward(alone, ours)
    same = least(here)
    print(f"              the same work in this process {same:6.0f} us   layer {least(ours) - same:6.0f} us")

    there, text = states[40], states[40].to_json()
    away = partial(env.step, states[20], LOOK)  # the simulator then stands elsewhere
    branch = after(away, partial(env.step, there, LOOK))
    from_json = after(away, lambda: env.step(State.from_json(text), LOOK))
    reset = after(away, partial(env.reset, options={"task_index": task}))
    replay = min(begin) + sum(alone[0][:41])
    print(
        f"branch at 40  ours {us(branch)}   from JSON {us(from_json)}   the upstream's replay from the start "
        f"{replay * 1e6:,.0f} us   state as JSON {len(text):,} bytes"
    )
    print(f"reset         ours {us(reset)}   upstream {us(begin)}")


def walk(env: Any, task: int, steps: int) -> tuple[list[State[Any]], list[Action]]:
    """A walk that does not end: its states and actions."""
    rng, (state, _) = random.Random(task), env.reset(options={"task_index": task})
    states, actions = [state], []
    while len(actions) < steps:
        action = wander(state, rng)
        result = env.step(state, action)
        if not result.done:
            actions.append(action)
            state = result.next_state
            states.append(state)
    return states, actions


def wander(state: State[Any], rng: random.Random) -> Action:
    commands = state.metadata.info["admissible_commands"]
    handling = [c for c in commands if not c.startswith("go to")]
    return Action(rng.choice(handling if rng.random() < 0.6 else commands))


def act(engine: Engine, command: str) -> str:
    """A step without the layer; as JSON, since that is how the engine's answer leaves it."""
    answer, snapshot = engine({"do": "act", "command": command}, b"")
    return json.dumps([answer, snapshot.hex()])


def after(before: Callable[[], Any], work: Callable[[], Any], count: int = 30) -> list[float]:
    """Times of `work`, each after `before`."""
    times = []
    for _ in range(count):
        before()
        times.append(timed(work))
    return times


def engines(env: Any) -> str:
    sizes = []
    for idle in env._cache._idle.values():
        pages = Path(f"/proc/{idle.simulator._process.pid}/statm").read_text().split()[1]
        sizes.append(f"{int(pages) * os.sysconf('SC_PAGE_SIZE') / 2**20:.0f} MiB")
    return ", ".join(sizes)


def games() -> None:
    """What a loaded game takes, beside what the bound of the pool counts."""
    engine = Engine(lenient=False, expert_plan=False, by_commands=False, max_games=99, max_game_bytes=1 << 40)
    paths = sorted(Path(DATA, "json_2.1.1").rglob("game.tw-pddl"))
    engine({"do": "start", "game": str(paths[0])}, b"")
    before, counted = resident(), engine._bytes()
    for path in paths[1:]:
        engine({"do": "start", "game": str(path)}, b"")
    grown, more = resident() - before, engine._bytes() - counted
    print(
        f"games         {len(paths) - 1} more loaded: the process grew by {grown / 2**20:.0f} MiB, "
        f"counted are {more / 2**20:.0f} MiB"
    )


if __name__ == "__main__":
    main()
