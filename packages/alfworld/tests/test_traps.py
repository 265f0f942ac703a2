"""What goes wrong with the upstream alone."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from alfworld_play import CLEAN, COOL, LOOK, PLACE, TWO, play, reward, texts, wander

import llenvs
from llenvs import Action
from llenvs.core.encoding import dumps
from llenvs.core.errors import (
    EpisodeOver,
    InvalidAction,
    InvalidOption,
    NotInstalled,
    SimulatorCrashed,
    TaskIndexOutOfRange,
    UnknownEnvironment,
    UnknownOption,
    UpstreamFailed,
)
from llenvs_alfworld.adapter import ADAPTER
from llenvs_alfworld.environment import AlfworldEnvironment
from llenvs_alfworld.simulator import AlfworldSimulator

Alfworld = Callable[..., AlfworldEnvironment]
ALL_ADDED = {
    "reward": "progress",
    "include_admissible_commands": True,
    "commands": "lenient",
    "expert_plan": True,
}
"""All that is opt-in, in one environment: each starts an engine of its own."""


def test_the_limit_of_steps_is_no_success(alfworld: Alfworld) -> None:
    env = alfworld(max_steps=2)
    first, last = play(env, "look", "inventory", task=LOOK)
    assert (first.done, last.terminated, last.truncated) == (False, False, True)
    assert (reward(last, "task_completion"), reward(last, "goal_conditions")) == (0.0, 0.0)
    assert env.spec.is_success(last.rewards) is False
    assert env.expert_plan(last.next_state) == env.expert_plan(first.next_state)
    with pytest.raises(EpisodeOver):
        env.step(last.next_state, Action("look"))


def test_a_won_episode_is_over(alfworld: Alfworld) -> None:
    """The upstream goes on, and takes the success back when the object is taken out again."""
    env = alfworld()
    plan = env.expert_plan(env.reset(options={"task_index": PLACE})[0])
    assert plan is not None
    won = play(env, *plan, task=PLACE)[-1].next_state
    assert env.expert_plan(won) == ()
    with pytest.raises(EpisodeOver):
        env.step(won, Action("look"))


def test_progress_as_the_reward(alfworld: Alfworld) -> None:
    env = alfworld(**ALL_ADDED)
    results = play(env, *env.walkthrough(TWO), task=TWO)
    assert sum(r.rewards.total for r in results) == 1.0
    assert [r.rewards.total for r in results if r.rewards.total] == [0.5, 0.5]


def test_admissible_commands_are_added_on_request_alone(alfworld: Alfworld) -> None:
    plain, listed = alfworld(), alfworld(**ALL_ADDED)
    for env, added in ((plain, False), (listed, True)):
        state, info = env.reset(options={"task_index": PLACE})
        commands = ", ".join(info["admissible_commands"])
        assert (f"\n\nAdmissible commands: {commands}" in state.observation.prompt) is added
    before, after = (texts(play(env, "go to tvstand 1", task=PLACE))[0] for env in (plain, listed))
    assert after.startswith(f"{before}\n\nAdmissible commands: ")
    assert "take creditcard 4 from tvstand 1" in after
    plan = plain.expert_plan(plain.reset(options={"task_index": PLACE})[0])
    assert plan is not None
    assert texts(play(listed, *plan, task=PLACE))[-1] == texts(play(plain, *plan, task=PLACE))[-1]


def test_lenient_commands(alfworld: Alfworld) -> None:
    way = ["go to garbagecan 1", "take soapbar 1 from garbagecan 1"]
    said = ["  Go to  Garbagecan 1.", way[1], "put soapbar 1 in/on garbagecan 1", "eat soapbar"]
    results = play(alfworld(**ALL_ADDED), *said, task=CLEAN)
    understood = [*way, "move soapbar 1 to garbagecan 1", None]
    assert [r.resolved_action and r.resolved_action.text for r in results] == understood
    assert [r.info["command"] for r in results] == understood
    assert [reward(r, "valid_action") for r in results] == [1.0, 1.0, 1.0, 0.0]
    exact = play(alfworld(), *way, "move soapbar 1 to garbagecan 1", "eat soapbar", task=CLEAN)
    assert [text.partition("\n\n")[0] for text in texts(results)] == texts(exact)
    assert [reward(r, "valid_action") for r in play(alfworld(), *said, task=CLEAN)] == [0.0, 0.0, 0.0, 0.0]


def test_expert_plans_in_the_hidden_state(alfworld: Alfworld) -> None:
    env, plain = alfworld(**ALL_ADDED), alfworld()
    state, _ = env.reset(options={"task_index": PLACE})
    plan = state.hidden["truth"]["expert_plan"]
    assert plan == plain.expert_plan(plain.reset(options={"task_index": PLACE})[0])
    assert plan[1] not in dumps((state.metadata, state.observation))
    results = play(env, *plan, task=PLACE)
    assert [r.next_state.hidden["truth"]["expert_plan"] for r in results] == [plan[n:] for n in range(1, 5)]


@pytest.mark.parametrize("task", [LOOK, COOL, TWO])
def test_expert_plans_win_from_anywhere(alfworld: Alfworld, task: int) -> None:
    env = alfworld()
    rng = random.Random(task)
    state, _ = env.reset(options={"task_index": task})
    for number in range(21):
        state = env.step(state, wander(state, rng)).next_state
        if state.is_terminal:
            return
        if number % 10 == 0:
            plan = env.expert_plan(state)
            assert plan is not None
            results = play(env, *plan, start=state)
            assert [r.terminated for r in results] == [False] * (len(plan) - 1) + [True]


def test_walks_branch_anywhere_in_any_order_from_four_threads(alfworld: Alfworld) -> None:
    """With more games than an engine keeps, so that they are forgotten and loaded again."""
    env = alfworld("eval_in_distribution", max_live=2, max_games=1)
    rng, taken = random.Random(0), []
    for task in (LOOK, PLACE):
        state, _ = env.reset(options={"task_index": task})
        for _ in range(20):
            action = wander(state, rng)
            result = env.step(state, action)
            taken.append((state, action, result))
            state = env.reset(options={"task_index": task})[0] if result.done else result.next_state
    chosen = rng.sample(taken, 12)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda t: env.step(t[0], t[1]), chosen))
    assert [dumps(r) for r in results] == [dumps(t[2]) for t in chosen]
    assert env.stats.replayed == 0


def test_many_kept_states_step_to_the_recorded_results(alfworld: Alfworld) -> None:
    env, before = alfworld(), alfworld().stats
    rng, taken = random.Random(1), []
    for episode in range(4):
        state, _ = env.reset(options={"task_index": (PLACE, CLEAN)[episode % 2]})
        while not state.is_terminal and state.metadata.step < 40:
            action = wander(state, rng)
            result = env.step(state, action)
            taken.append((state, action, result))
            state = result.next_state
    assert len(taken) > 100
    for state, action, result in rng.sample(taken, 50):
        assert env.step(state, action) == result
    stats = env.stats
    assert (stats.live, stats.at_work, stats.replayed, stats.snapshots) == (1, 0, 0, 0)
    assert stats.restored - before.restored > 30
    assert max(len(state.hidden["snapshot"]) for state, _, _ in taken) < 300


def test_states_by_commands_give_the_same(alfworld: Alfworld) -> None:
    by_values, by_commands = alfworld(), alfworld(state="commands")
    rng = random.Random(3)
    one, other = (env.reset(options={"task_index": PLACE})[0] for env in (by_values, by_commands))
    kept = []
    for _ in range(15):
        action = wander(one, rng)
        first, second = by_values.step(one, action), by_commands.step(other, action)
        assert texts([first]) == texts([second])
        assert (first.info, first.rewards) == (second.info, second.rewards)
        kept.append((other, action, second))
        one, other = first.next_state, second.next_state
    for state, action, result in rng.sample(kept, 5):
        assert by_commands.step(state, action) == result
    with pytest.raises(InvalidAction, match="see the option `state`"):
        by_values.step(kept[5][0], Action("look"))


def test_the_death_of_an_engine_is_not_ours(alfworld: Alfworld) -> None:
    env, before = alfworld(), alfworld().stats.crashed
    result = play(env, "go to tvstand 1", task=PLACE)[-1]
    (idle,) = env._cache._idle.values()
    assert isinstance(idle.simulator, AlfworldSimulator)
    os.kill(idle.simulator._process.pid, 9)
    taken = env.step(result.next_state, Action("take creditcard 4 from tvstand 1"))
    assert taken.next_state.observation.prompt == "You pick up the creditcard 4 from the tvstand 1."
    assert env.stats.crashed == before + 1


def test_a_hanging_engine_is_ended(data_dir: str) -> None:
    with (
        llenvs.make("alfworld/train", data_dir=data_dir, time_limit=0.000001) as env,
        pytest.raises(SimulatorCrashed, match=r"alfworld/train.*no answer within"),
    ):
        env.reset()


def test_text_of_a_game_file_is_not_run(alfworld: Alfworld, tmp_path: Path) -> None:
    """The upstream hands these expressions to `eval`."""
    source = alfworld().games[PLACE].path
    game = json.loads(source.read_bytes())
    mark = tmp_path / "mark"
    game["grammar"] = game["grammar"].replace("{r.name}. #examine", f"{{open('{mark}', 'w')}}. #examine")
    (tmp_path / "game.tw-pddl").write_text(json.dumps(game))
    env = llenvs.make(f"alfworld/{tmp_path}/game.tw-pddl", max_live=1)
    with env, pytest.raises(UpstreamFailed, match="is not run: only attributes of its variables"):
        play(env, "go to tvstand 1")
    assert not mark.exists()


def test_a_state_of_another_game_is_refused(alfworld: Alfworld) -> None:
    env = alfworld()
    state = play(env, "go to tvstand 1", "take creditcard 4 from tvstand 1", task=PLACE)[-1].next_state
    theirs = play(env, "go to desk 1", task=LOOK)[-1].next_state.hidden["snapshot"]
    with pytest.raises(InvalidAction, match="made with another game file"):
        env.step(replace(state, hidden={**state.hidden, "snapshot": theirs}), Action("look"))
    assert (
        env.step(state, Action("inventory")).next_state.observation.prompt == "You are carrying: a creditcard 4."
    )


def test_names(data_dir: str) -> None:
    names = [info.name for info in ADAPTER.list_environments()]
    assert names == ["train", "eval_in_distribution", "eval_out_of_distribution"]
    for name, meant in (
        ("valid_unseen", "eval_out_of_distribution"),
        ("valid_seen", "eval_in_distribution"),
        ("alfworld:eval_out_of_distribution", "eval_out_of_distribution"),
    ):
        with llenvs.environment_registry.get(name=name, adapter="alfworld", data_dir=data_dir) as env:
            assert env.spec.id == f"alfworld/{meant}"
            assert env.spec.max_steps == 50
    with pytest.raises(UnknownEnvironment, match="did you mean 'eval_in_distribution'"):
        llenvs.make("alfworld/eval_in_distributions")


def test_folders_and_files(alfworld: Alfworld, data_dir: str, legacy_game: str, tmp_path: Path) -> None:
    by_folder = alfworld("eval_out_of_distribution", data_dir=f"{data_dir}/legacy_2.1.1")
    assert [str(game.path) for game in by_folder.games] == [str(Path(legacy_game).resolve())]
    assert len(llenvs.make(f"alfworld/{Path(legacy_game).parent}")) == 1
    with pytest.raises(InvalidOption, match=r"data_dir: has no games of train .*run: alfworld-download"):
        llenvs.make("alfworld/train", data_dir=str(tmp_path))
    with pytest.raises(InvalidOption, match="data_dir: is no folder"):
        llenvs.make("alfworld/train", data_dir=str(tmp_path / "none"))
    (tmp_path / "game.tw-pddl").write_text('{"pddl_domain": "", "grammar": 3}')
    with pytest.raises(InvalidOption, match="is no game of ALFWorld: it lacks grammar, pddl_problem"):
        llenvs.make(f"alfworld/{tmp_path}/game.tw-pddl")
    with pytest.raises(UnknownEnvironment, match=r"did you mean '.*game\.tw-pddl'\? \(the file cannot be read"):
        llenvs.make(f"alfworld/{tmp_path}/game.tw-pdd")
    with pytest.raises(
        InvalidOption, match=r"task_types: 7 is no type of task; valid: 1 \(pick_and_place_simple\)"
    ):
        llenvs.make("alfworld/train", data_dir=data_dir, task_types=[1, 7])
    with pytest.raises(UnknownOption, match="task_types"):
        llenvs.make(f"alfworld/{legacy_game}", task_types=[1])


def test_games_that_the_upstream_leaves_out(data_dir: str, tmp_path: Path) -> None:
    source = next(Path(data_dir, "json_2.1.1", "train").glob("pick_and_place*/*/game.tw-pddl"))
    content = source.read_text()
    for name, text in (
        ("pick_and_place_simple-Mug-None-Desk-1/trial_b", content),
        ("pick_and_place_simple-Mug-None-Desk-1/trial_a", content),
        ("pick_and_place_simple-AppleSliced-None-Desk-1/trial", content),
        ("pick_and_place_with_movable_recep-Mug-Cup-Desk-1/trial", content),
        ("pick_and_place_simple-Mug-None-Desk-2/trial", content.replace('"solvable": true', '"solvable": false')),
        ("pick_and_place_simple-Mug-None-Desk-3/trial", content.replace('"solvable": true, ', "")),
    ):
        folder = tmp_path / "train" / name
        folder.mkdir(parents=True)
        (folder / "game.tw-pddl").write_text(text)
    with llenvs.make("alfworld/train", data_dir=str(tmp_path)) as env:
        assert isinstance(env, AlfworldEnvironment)
        assert [game.name.split("/")[1] for game in env.games] == ["trial_a", "trial_b"]


def test_data_by_environment_variable(data_dir: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", data_dir)
    assert len(llenvs.make("alfworld/train")) == 6
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(InvalidOption, match="ALFWORLD_DATA: has no games of train"):
        llenvs.make("alfworld/train")
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidOption, match=r"data_dir: is not given, and ~/\.cache/alfworld is not there"):
        llenvs.make("alfworld/train")


def test_walkthroughs_that_are_not_there(alfworld: Alfworld, legacy_game: str) -> None:
    with pytest.raises(InvalidOption, match=r"holds no walkthrough; ask for expert_plan\(state\)"):
        alfworld(legacy_game).walkthrough()
    with pytest.raises(TaskIndexOutOfRange):
        alfworld().walkthrough(6)


def test_neither_importing_nor_playing_touches_this_process(data_dir: str, tmp_path: Path) -> None:
    script = """
import sys, llenvs
arguments = list(sys.argv)
env = llenvs.make("alfworld/train", data_dir=sys.argv[1], max_live=1)
state, _ = env.reset(options={"task_index": 1})
env.step(state, llenvs.Action("look"))
env.close()
assert sys.argv == arguments
assert not {"alfworld", "textworld", "fast_downward", "jericho"} & set(sys.modules)
"""
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("ALFWORLD_DATA", None)
    command = [sys.executable, "-c", script, data_dir]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_without_the_upstream_the_command_that_installs_it_is_said(
    data_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [n for n in sys.modules if n.partition(".")[0] in ("alfworld", "textworld", "fast_downward")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[alfworld\]"'):
        llenvs.make("alfworld/train", data_dir=data_dir)


def test_the_readmes_lines_run(data_dir: str) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    snippet = readme.split("```text\n")[1].split("```")[0]
    assert "alfworld-data" in snippet
    command = [sys.executable, "-c", snippet.replace("alfworld-data", data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Your task is to: " in done.stdout
    assert done.stdout.endswith("\n1.0\n")
