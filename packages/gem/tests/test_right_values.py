"""What the games show, seen at the upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gem_play import board, boxed, play, prompt, rewards

from llenvs import Action, Environment

Env = Callable[..., Environment[Any]]


def test_guess_the_number_hard(env: Env) -> None:
    results = play(env("game:GuessTheNumber-v0-hard"), "25", "12", "25", "99", "41")
    assert rewards(results) == [0.0, 0.0, 0.0, 0.0, 1.0]
    said = [prompt(result) for result in results]
    assert "higher than 25" in said[0]
    assert "higher than 12" in said[1]
    assert "already guessed" in said[2]
    assert "outside the range" in said[3]
    assert said[4].endswith("the correct number 41 in 5 turns.")
    last = results[-1]
    assert (last.terminated, last.truncated) == (True, False)
    assert last.rewards["success"].reward == 1.0
    assert [result.done for result in results[:-1]] == [False] * 4


@pytest.mark.parametrize("move", ["", "0"])
def test_a_first_guess_that_cannot_be_read(env: Env, move: str) -> None:
    (result,) = play(env("game:GuessTheNumber-v0-hard"), move)
    assert rewards([result]) == [-0.1]
    assert (result.terminated, result.truncated) == (True, False)
    assert result.rewards["success"].reward == 0.0


def test_guess_the_number_easy_pays_for_the_distance_at_the_last_turn(env: Env) -> None:
    results = play(env("game:GuessTheNumber-v0-easy"), "9", "9", "9", "8")
    assert rewards(results) == [0.0, 0.0, 0.0, 0.3333]
    assert [(r.terminated, r.truncated) for r in results] == [(False, False)] * 3 + [(True, True)]
    assert results[-1].rewards["success"].reward == 0.0


def test_mastermind(env: Env) -> None:
    results = play(env("game:Mastermind-v0-easy"), "1 2", "6 1")
    assert "0 black peg(s) and 1 white peg(s)" in prompt(results[0])
    assert rewards(results) == [0.0, 1.0]
    assert results[-1].terminated
    hard = play(env("game:Mastermind-v0-hard"), "1 2 3 4")
    assert "0 black peg(s) and 3 white peg(s)" in prompt(hard[0])


def test_tower_of_hanoi(env: Env) -> None:
    game = env("game:TowerofHanoi-v0-easy")
    results = play(game, "A C", "A B", "C B", "A C", "B A", "B C", "A C")
    assert rewards(results) == [0.0] * 6 + [1.0]
    assert results[-1].rewards["success"].reward == 1.0
    (empty,) = play(game, "B C")
    assert rewards([empty]) == [0.0]
    assert prompt(empty).endswith("tower B, which is empty.")


def test_minesweeper(env: Env) -> None:
    results = play(env("game:Minesweeper-v0-easy"), "reveal 0 0", "flag 4 4", "reveal 4 4")
    assert rewards(results) == [0.6, 0.0, 0.0]
    assert "You hit a mine" in prompt(results[-1])
    assert (results[-1].terminated, results[-1].truncated) == (True, False)
    assert results[-1].rewards["success"].reward == 0.0


def test_2048(env: Env) -> None:
    results = play(env("game:Game2048-v0-easy"), "left", "up", "left", "right")
    assert rewards(results) == [0.0, 0.2, 0.0, 0.0]
    rows = [line.split() for line in board(results[0]).splitlines()[1:5]]
    assert [(i, j) for i in range(4) for j in range(4) if rows[i][j] == "2"] == [(0, 0), (1, 0), (3, 1)]


def test_2048_branches_with_its_chance(env: Env) -> None:
    game, other = env("game:Game2048-v0-easy"), env("game:Game2048-v0-hard")
    (left,) = play(game, "left")
    once = game.step(left.next_state, Action(boxed("up")))
    play(other, "left", "up", "right", "down", task_index=3)
    play(game, "right", "down", task_index=1)
    again = game.step(left.next_state, Action(boxed("up")))
    assert rewards([once, again]) == [0.2, 0.2]
    assert board(once) == board(again)
    assert once.next_state == again.next_state


def test_sudoku(env: Env) -> None:
    results = play(env("game:Sudoku-v0-easy"), "1 1 1", "1 2 4")
    assert rewards(results) == [0.0, 0.1]
    assert "already filled" in prompt(results[0])
    assert prompt(results[1]).endswith("which is correct.")


def test_fifteen_puzzle(env: Env) -> None:
    _, info = env("game:FifteenPuzzle-v0-easy").reset(options={"task_index": 0})
    assert info["suffix"].split()[-7:-3] == ["3", "2", "__", "1"]


def test_sokoban(env: Env) -> None:
    results = play(env("game:Sokoban-v0-easy"), "up", "left", "down", "x")
    assert rewards(results) == [0.0, 0.0, 0.0, -0.1]
    assert "pushed a box while you moved up" in prompt(results[0])
    assert "you would collide" in prompt(results[1])
    assert (results[-1].terminated, results[-1].truncated) == (True, False)


def test_wordle_and_hangman(env: Env, short_words: str) -> None:
    results = play(env("game:Wordle-v0-easy", nltk_data=short_words), "cat", "CAR")
    assert rewards(results) == [0.3333, 0.6667]
    assert prompt(results[0]).endswith("CAT\n['G', 'G', 'X']")
    assert results[-1].terminated
    results = play(env("game:Hangman-v0-easy", nltk_data=short_words), "a", "e", "CAR")
    assert rewards(results) == [0.1667, 0.0, 0.8333]
    assert results[-1].rewards["success"].reward == 1.0


def test_reasoning_gym(env: Env) -> None:
    legs = env("rg:leg_counting")
    states = [legs.reset(options={"task_index": i})[0] for i in (0, 1)]
    assert [state.hidden["truth"]["answer"] for state in states] == ["100", "140"]
    assert legs.step(states[0], Action(boxed("100"))).rewards.total == 1.0
    assert legs.step(states[0], Action("<answer>100</answer>")).rewards.total == 0.0
    near = legs.step(states[0], Action(boxed("100 legs"))).rewards
    assert (near["reward"].reward, near["success"].reward) == (0.375, 0.0)


def test_maths(env: Env) -> None:
    rows = [{"problem": f"{i}+{i}", "answer": str(2 * i)} for i in range(1, 9)]
    sums = env("math:GSM8K", dataset=rows, shuffle=0)
    prompts = [sums.reset(options={"task_index": i})[0].observation.prompt for i in range(8)]
    assert prompts == ["3+3", "5+5", "4+4", "7+7", "6+6", "1+1", "2+2", "8+8"]
    state, _ = sums.reset(options={"task_index": 3})
    values = {text: sums.step(state, Action(text)).rewards.total for text in (boxed("14.0"), boxed("13"), "14")}
    assert values == {boxed("14.0"): 1.0, boxed("13"): 0.0, "14": 0.0}


def test_python_tool(env: Env) -> None:
    rows = [{"problem": "3*12", "answer": 36}]
    maths = env("math:GSM8K", dataset=rows, tool_types=("python",), tool_reward=0.05, tool_success_reward=0.25)
    assert [tool.name for tool in maths.available_tools] == ["python", "submit_answer"]
    state, _ = maths.reset()
    result = maths.step(state, Action.from_tool_call("python", {"code": "print(3*12)"}))
    (said,) = result.next_state.observation.tool_results
    assert said.content.strip() == "Code execution result: 36"
    assert result.rewards.total == pytest.approx(0.3)
    assert not result.done
