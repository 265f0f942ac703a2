"""Values seen at the upstream (verifiers 0.3.1)."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Make

from llenvs import Action, State
from llenvs.core.signals import RewardType
from llenvs.core.tools.call import ToolCall, ToolStatus


def scores(rewards: Any) -> dict[str, float | None]:
    return {signal.name: signal.reward for signal in rewards}


def call(name: str, **arguments: Any) -> Action:
    return Action.from_tool_call(name, arguments)


@pytest.mark.parametrize(
    ("text", "total", "exact", "length", "form"),
    [
        ("<think>a</think><answer>6</answer>", 2.03, 1.0, 0.34, 1.0),
        ("<answer>7</answer>", 0.03, 0.0, 0.18, 0.6),
        ("", 0.04, 0.0, 0.0, 0.2),
    ],
)
def test_single_turn(make: Make, text: str, total: float, exact: float, length: float, form: float) -> None:
    env = make("vf_sums")
    state, info = env.reset(options={"task_index": 3})
    assert [(m.role, m.content) for m in state.observation.messages] == [
        ("system", "Be short."), ("user", "What is 3+3?"),
    ]  # fmt: skip
    assert (state.observation.prompt, info["example_id"]) == ("What is 3+3?", 3)
    result = env.step(state, Action(text))
    assert (result.terminated, result.truncated) == (True, False)
    assert result.info["stop_condition"] == "max_turns_reached"
    assert result.rewards.total == pytest.approx(total, abs=1e-12)
    assert scores(result.rewards) == pytest.approx(
        {"exact": exact, "length_pen": length, "format_reward_func": form, "num_turns": 1.0, "total_reward": total}
    )
    assert [signal.weight for signal in result.rewards] == [2.0, -0.5, 0.2, 0.0, 0.0]
    assert result.rewards["format_reward_func"].reward_type is RewardType.FORMAT
    assert result.rewards["num_turns"].reward_type is RewardType.PROCESS
    assert env.spec.is_success(result.rewards) is (total >= 0.5)
    assert env.spec.is_multi_turn is False


def test_tools(make: Make) -> None:
    env = make("vf_tools")
    state, _ = env.reset(options={"task_index": 2})
    assert state.observation.prompt == "compute 2+3 with the tool"
    add, div = state.observation.available_tools
    assert add.description == "Add two integers."
    assert add.parameters["properties"]["x"] == {"description": "the first", "title": "X", "type": "integer"}
    assert div.parameters["required"] == ["a", "b"]  # the upstream lists what has a default, too
    middle = env.step(state, call("add", x=2, y=3))
    assert [(r.call_id, r.content, r.name) for r in middle.next_state.observation.tool_results] == [
        ("call_0", "5", "add")
    ]
    assert not middle.done
    assert len(middle.rewards) == 0
    right = env.step(middle.next_state, Action("It is 5"))
    assert scores(right.rewards) == {
        "right": 1.0, "num_turns": 2.0, "total_tool_calls": 1.0, "add_calls": 1.0, "div_calls": 0.0,
        "total_reward": 1.0,
    }  # fmt: skip
    assert right.info["stop_condition"] == "no_tools_called"
    assert right.terminated
    assert env.step(middle.next_state, Action("It is 6")).rewards.total == 0.0


def test_three_tool_calls_use_up_the_turns(make: Make) -> None:
    env = make("vf_tools")
    state, _ = env.reset(options={"task_index": 2})
    for _ in range(3):
        result = env.step(state, call("add", x=2, y=3))
        state = result.next_state
    assert (result.truncated, result.terminated) == (True, False)
    assert result.info["stop_condition"] == "max_turns_reached"
    assert result.rewards.total == 0.0


@pytest.mark.parametrize(
    ("made", "text", "status"),
    [
        (ToolCall("nope", {}, "c"), "'nope'", ToolStatus.UNKNOWN_TOOL),
        (ToolCall.from_json("add", "twelve", "c"), "Expecting value: line 1 column 1 (char 0)",
         ToolStatus.INVALID_ARGUMENTS),
        (ToolCall("add", {"x": 1}, "c"), "add() missing 1 required positional argument: 'y'",
         ToolStatus.INVALID_ARGUMENTS),
        (ToolCall("div", {"a": 1, "b": 0}, "c"), "division by zero", ToolStatus.ERROR),
    ],
)  # fmt: skip
def test_refused_calls_are_answered(make: Make, made: ToolCall, text: str, status: ToolStatus) -> None:
    env = make("vf_tools")
    result = env.step(env.reset(options={"task_index": 0})[0], Action(tool_calls=(made,)))
    (answer,) = result.next_state.observation.tool_results
    assert (answer.content, answer.status, result.done) == (text, status, False)


def test_an_error_that_stops_ends_the_episode(make: Make) -> None:
    env = make("vf_tools", args={"strict": True})
    result = env.step(env.reset(options={"task_index": 0})[0], call("div", a=1, b=0))
    assert result.terminated
    assert result.info == {"stop_condition": "has_error", "error": "ToolCallError: division by zero"}
    assert result.rewards["total_reward"].reward == 0.0


def test_tools_that_change_the_state(make: Make) -> None:
    env = make("vf_tools", args={"stateful": True})
    state, _ = env.reset(options={"task_index": 0})
    (put,) = state.observation.available_tools
    assert list(put.parameters["properties"]) == ["item"]  # the basket is the environment's
    one = env.step(state, call("put", item="a")).next_state
    two = env.step(one, call("put", item="b")).next_state
    assert [r.content for r in two.observation.tool_results] == ["a, b"]
    assert env.step(two, Action("done")).rewards["filled"].reward == 1.0
    assert env.step(one, Action("done")).rewards["filled"].reward == 0.5  # the other branch changed nothing
    assert env.step(state, Action("done")).rewards["filled"].reward == 0.0


def test_guessing(make: Make) -> None:
    env = make("vf_guess")
    state, _ = env.reset(options={"task_index": 0})
    middle = env.step(state, Action("5")).next_state
    assert middle.observation.prompt == "higher"
    won = env.step(middle, Action("7"))
    assert won.terminated
    assert won.info["stop_condition"] == "has_final_env_response"
    assert won.rewards.total == pytest.approx(1.1)
    assert [m.content for m in won.next_state.observation.messages[1:]] == ["5", "higher", "7", "yes"]
    assert won.next_state.observation.prompt == "yes"
    other = env.step(middle, Action("hmm"))
    assert (other.next_state.observation.prompt, other.done) == ("number please", False)
    assert env.spec.max_steps is None


def test_max_steps_is_the_environments_own_limit(make: Make) -> None:
    env = make("vf_guess", max_steps=2)
    state, _ = env.reset(options={"task_index": 0})
    result = env.step(env.step(state, Action("1")).next_state, Action("2"))
    assert (result.truncated, result.info["stop_condition"]) == (True, "max_turns_reached")
    assert result.rewards["left"].reward == 2.0  # the environment does not answer the last turn
    assert env.spec.max_steps == 2


def test_reasoning_gym(make: Make) -> None:
    pytest.importorskip("reasoning_gym")
    args = {"gym": "leg_counting", "num_train_examples": 5, "num_eval_examples": 5, "seed": 42}
    env, train = make("ReasoningGymEnv", args=args), make("ReasoningGymEnv", args=args, split="train")
    assert (len(env), len(train)) == (5, 5)
    state, _ = env.reset(options={"task_index": 0})
    assert state.hidden["truth"]["answer"] == "5"  # the upstream's data set holds an index
    tagged, bare = env.step(state, Action("<answer>231</answer>")), env.step(state, Action("231"))
    expected = {"check_answer_reward_func": 1.0, "format_reward_func": 1.0, "total_reward": 1.0}
    assert scores(tagged.rewards) == expected
    assert (bare.rewards.total, bare.rewards["format_reward_func"].reward) == (0.0, 0.2)
    first, _ = train.reset(options={"task_index": 0})
    assert train.step(first, Action("<answer>100</answer>")).rewards.total == 1.0


def test_gym(make: Make) -> None:
    env = make("vf_gym")
    assert len(env) == 50
    state, _ = env.reset(options={"task_index": 0})
    goal = int(state.observation.prompt.split()[1].rstrip(","))
    rewards = []
    for _ in range(goal + 1):
        result = env.step(state, Action("r"))
        state = result.next_state
        rewards.append(result.rewards.by_name("step_reward"))
    # the upstream asks the model once more before it looks whether the episode is over
    assert result.terminated
    assert result.info["stop_condition"] == "is_done"
    assert [s.reward for s in rewards if s is not None] == [None, *[-0.1] * (goal - 1), 1.0][1:]
    assert result.rewards.total == pytest.approx(1.0 - 0.1 * (goal - 1))


def test_groups_route_to_their_environments(make: Make) -> None:
    env = make("vf_mixed")
    assert len(env) == 3 + 20 + 3
    assert env.spec.max_steps is None
    assert {tool.name for tool in env.available_tools} == {"add", "div"}
    state, info = env.reset(options={"task_index": 1})
    assert info["env_id"] == "sums"
    result = env.step(state, Action("<answer>2</answer>"))
    assert (result.done, result.rewards["exact"].reward) == (True, 1.0)
    assert (result.rewards["won"].reward, result.rewards["won"].weight) == (None, 0.0)  # another environment's
    state, info = env.reset(options={"task_index": 3 + 2})
    assert (info["env_id"], len(state.observation.available_tools)) == ("tools", 2)
    result = env.step(env.step(state, call("add", x=2, y=3)).next_state, Action("5"))
    assert result.rewards.total == 1.0
    state, info = env.reset(options={"task_index": 23})
    assert env.step(state, Action("7")).rewards["won"].reward == 1.0


def test_tasks_by_split_size_and_seed(make: Make) -> None:
    def questions(**options: Any) -> list[str]:
        env = make("vf_sums", **options)
        return [env.reset(options={"task_index": i})[0].observation.prompt for i in range(len(env))]

    plain, shuffled = questions(), questions(seed=3)
    assert questions(size=2) == plain[:2] == ["What is 0+0?", "What is 1+1?"]
    assert shuffled != plain
    assert sorted(shuffled) == sorted(plain)
    assert questions(seed=3, size=4) == shuffled[:4]
    assert questions(split="train", args={"num_tasks": 3}) == plain[:3]
    from vf_sums import load_environment

    upstream = load_environment().get_eval_dataset(n=4, seed=3)
    assert [row[-1]["content"] for row in upstream["prompt"]] == shuffled[:4]


def test_states_are_small_and_survive_json(make: Make) -> None:
    env = make("vf_guess")
    state, _ = env.reset(options={"task_index": 0})
    for text in ("1", "hmm", "5"):
        state = env.step(state, Action(text)).next_state
    assert len(state.to_json()) < 4000
    won = env.step(State.from_json(state.to_json()), Action("7"))
    assert won.rewards.total == pytest.approx(1.0)
