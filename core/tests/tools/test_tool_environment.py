"""The tool environment: chat form, state as a value, terminal tools, rewards that are watched from the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import pytest

from llenvs.core import (
    Action,
    ChatMessage,
    EnvironmentSpec,
    Signal,
    State,
    ToolCall,
    ToolEfficiencyReward,
    ToolEnvironment,
    ToolStatus,
    ToolValidityReward,
    Trajectory,
)
from llenvs.core.errors import EpisodeOver, InvalidOption
from llenvs.core.rewards import make_reward_functions
from llenvs.core.tool_environment import TaskStart, Turn
from llenvs.core.tools import SimpleToolExecutor, Tool, ToolResult
from llenvs.core.tools.messages import turn_messages
from llenvs.evaluation.conversation import Conversation
from llenvs.testing import EnvironmentConformance, check_environment


class Hidden(TypedDict):
    secret: int
    guesses: list[int]


def guess(hidden: Hidden, number: int) -> tuple[str, Hidden]:
    """Guess the number.

    Args:
        number: From 1 to 9.
    """
    if not 1 <= number <= 9:
        raise ValueError("the number must be from 1 to 9")
    hidden["guesses"].append(number)
    difference = number - hidden["secret"]
    return "right" if difference == 0 else "too high" if difference > 0 else "too low", hidden


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def give_up(hidden: Hidden) -> tuple[str, Hidden]:
    """End the game."""
    return "The end.", hidden


class GuessingGame(ToolEnvironment[Hidden]):
    def __init__(self, **options: Any) -> None:
        spec = EnvironmentSpec("guessing", "toys", max_steps=6, is_multi_turn=True, success_signal="found")
        tools = [
            Tool.from_callable(guess, stateful=True),
            double,
            Tool.from_callable(give_up, stateful=True, terminal=True),
        ]
        super().__init__(spec, options.pop("executor", tools), **options)

    @property
    def num_tasks(self) -> int:
        return 9

    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        return TaskStart("Guess my number.", Hidden(secret=task_index + 1, guesses=[]), task="A game.")

    def _react(self, action: Action, results: tuple[ToolResult, ...], turn: Turn) -> Turn:
        found = turn.hidden["secret"] in turn.hidden["guesses"]
        return Turn(turn.hidden, turn.prompt, turn.terminated or found, turn.info)

    def _signals(self, state: State[Hidden], action: Action, next_state: State[Hidden]) -> Iterable[Signal]:
        found = next_state.hidden["secret"] in next_state.hidden["guesses"]
        return (Signal("found", reward=float(found)),)


class TestGuessingGame(EnvironmentConformance):
    make = staticmethod(GuessingGame)


class TestGuessingGameWithChat(EnvironmentConformance):
    make = staticmethod(lambda: GuessingGame(record_chat=True))


def call(name: str, id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, id)


def start(env: GuessingGame, secret: int = 5) -> State[Hidden]:
    return env.reset(options={"task_index": secret - 1})[0]


@pytest.fixture
def env() -> GuessingGame:
    return GuessingGame()


def test_observations_offer_the_tools_and_hold_the_results(env: GuessingGame) -> None:
    state = start(env)
    assert env.spec.supports_tools
    assert [t.name for t in state.observation.available_tools] == ["guess", "double", "give_up"]
    assert state.observation.available_tools == tuple(env.available_tools)
    actions = (call("double", "x", number=4), call("guess", "y", number=4), call("gues", "z", number=4))
    result = env.step(state, Action("Let me see.", actions))
    seen = result.next_state.observation
    assert [(r.call_id, r.name, r.status, r.content) for r in seen.tool_results] == [
        ("x", "double", ToolStatus.SUCCESS, "8"),
        ("y", "guess", ToolStatus.SUCCESS, "too low"),
        (
            "z",
            "gues",
            ToolStatus.UNKNOWN_TOOL,
            "Error: there is no tool 'gues'. Did you mean 'guess'? Available tools: guess, double, give_up.",
        ),
    ]
    assert seen.prompt == ""
    assert seen.task == "A game."
    assert not result.done


def test_a_state_can_be_branched_after_its_tools_had_effects(env: GuessingGame) -> None:
    first = start(env)
    before = first.to_json()
    low = env.step(first, Action("", (call("guess", number=1),))).next_state
    high = env.step(first, Action("", (call("guess", number=9),))).next_state
    right = env.step(low, Action("", (call("guess", number=5),)))
    assert first.to_json() == before
    assert (low.hidden["guesses"], high.hidden["guesses"]) == ([1], [9])
    assert right.next_state.hidden["guesses"] == [1, 5]
    assert right.terminated
    again = State.from_json(low.to_json())
    assert env.step(again, Action("", (call("guess", number=5),))) == right


def test_ids_are_given_where_they_are_missing_or_double(env: GuessingGame) -> None:
    calls = (call("double", number=1), call("double", "a", number=2), call("double", "a", number=3))
    result = env.step(start(env), Action("", calls))
    assert result.resolved_action is not None
    ids = [c.id for c in result.resolved_action.tool_calls]
    assert ids == [r.call_id for r in result.next_state.observation.tool_results] == ["call_0_0", "a", "call_0_2"]
    later = env.step(result.next_state, Action("", calls[:1]))
    assert later.next_state.observation.tool_results[0].call_id == "call_1_0"


def test_an_action_without_a_call_is_reminded_of_the_tools(env: GuessingGame) -> None:
    result = env.step(start(env), Action("I think it is 5."))
    assert not result.done
    assert result.next_state.observation.prompt == (
        "You called no tool. Answer by calling one of: guess, double, give_up."
    )


def test_nothing_ends_the_episode_but_its_end(env: GuessingGame) -> None:
    state = start(env)
    bad = (
        call("guess", number=99),
        call("guess", number="5"),
        call("give_up", reason="tired"),
        ToolCall("give_up", {}, "", "the JSON ends too early", "{"),
        call("nothing"),
    )
    result = env.step(state, Action("", bad))
    assert not result.done
    assert [r.status.value for r in result.next_state.observation.tool_results] == [
        "error",
        "invalid_arguments",
        "invalid_arguments",
        "invalid_arguments",
        "unknown_tool",
    ]
    ended = env.step(result.next_state, Action("", (call("give_up"),)))
    assert ended.terminated
    assert ended.next_state.observation.tool_results[0].content == "The end."
    with pytest.raises(EpisodeOver):
        env.step(ended.next_state, Action("", (call("double", number=1),)))


def test_the_limit_of_steps_truncates(env: GuessingGame) -> None:
    trajectory = Trajectory(start(env))
    while not trajectory.done:
        trajectory = trajectory.step(env, Action("", (call("double", number=1),)))
    assert len(trajectory) == 6
    last = trajectory.transitions[-1]
    assert env.step(last.state, last.action).truncated


# -- the chat -----------------------------------------------------------------------------------------------------


def played(env: GuessingGame) -> Trajectory:
    trajectory = Trajectory(start(env))
    trajectory = trajectory.step(
        env, Action("Two at once.", (call("guess", "g", number=1), call("double", "d", number=3)))
    )
    trajectory = trajectory.step(env, Action("Hm."))
    return trajectory.step(env, Action("", (call("guess", "h", number=5),)))


CHAT = [
    ("user", "A game.\n\nGuess my number.", None, []),
    ("assistant", "Two at once.", None, ["g", "d"]),
    ("tool", "too low", "g", []),
    ("tool", "6", "d", []),
    ("assistant", "Hm.", None, []),
    ("user", "You called no tool. Answer by calling one of: guess, double, give_up.", None, []),
    ("assistant", "", None, ["h"]),
    ("tool", "right", "h", []),
]


def rows(messages: Iterable[ChatMessage]) -> list[tuple[str, str, str | None, list[str]]]:
    return [(m.role, m.content, m.tool_call_id, [c.id for c in m.tool_calls]) for m in messages]


def test_the_chat_that_the_runner_builds_has_the_form_that_apis_demand() -> None:
    assert rows(Conversation.of(played(GuessingGame())).chat) == CHAT


def test_the_chat_that_the_environment_records_is_the_same() -> None:
    trajectory = played(GuessingGame(record_chat=True))
    assert rows(trajectory.final_state.observation.messages) == CHAT
    assert rows(Conversation.of(trajectory).chat) == CHAT
    assert rows(trajectory.initial_state.observation.messages) == CHAT[:1]
    assert played(GuessingGame()).final_state.observation.messages == ()


def test_results_that_do_not_match_the_calls_are_refused() -> None:
    action = Action("", (call("f", "a"), call("f", "b")))
    results = [ToolResult("b", "2"), ToolResult("a", "1")]
    assert [(m.tool_call_id, m.content) for m in turn_messages(action, results)[1:]] == [("a", "1"), ("b", "2")]
    for wrong in (results[:1], [*results, ToolResult("c", "3")], [ToolResult("a", "1")] * 2):
        with pytest.raises(ValueError, match="do not match"):
            turn_messages(action, wrong)


# -- rewards ------------------------------------------------------------------------------------------------------


def test_tool_use_is_watched_from_the_start_and_counts_for_nothing() -> None:
    env = GuessingGame()
    first = env.step(start(env), Action("", (call("double", number=1), call("nothing"), call("double"))))
    assert first.rewards["tool_validity"].reward is None
    assert first.rewards["tool_efficiency"].reward is None
    last = env.step(first.next_state, Action("", (call("double", number=1), call("guess", number=5))))
    assert last.rewards["tool_validity"].reward == 3 / 5
    assert last.rewards["tool_validity"].feedback == "2 of 5 tool calls were invalid."
    assert last.rewards["tool_efficiency"].reward == 2 / 5  # two invalid, one repeated
    assert last.rewards["tool_efficiency"].feedback == "3 of 5 tool calls failed or repeated an earlier one."
    assert [last.rewards[n].weight for n in ("tool_validity", "tool_efficiency")] == [0.0, 0.0]
    assert last.rewards.total == 1.0


def test_without_any_call_there_is_no_number() -> None:
    env = GuessingGame()
    trajectory = Trajectory(start(env))
    while not trajectory.done:
        trajectory = trajectory.step(env, Action("no"))
    assert trajectory.transitions[-1].rewards["tool_validity"].reward is None


def test_a_repeated_call_with_another_result_is_no_waste() -> None:
    env = GuessingGame(executor=SimpleToolExecutor([Tool.from_callable(count, stateful=True), END]))
    state = start(env)
    for _ in range(3):
        state = env.step(state, Action("", (call("count"),))).next_state
    assert env.step(state, Action("", (call("end"),))).rewards["tool_efficiency"].reward == 1.0


def count(hidden: Hidden) -> tuple[int, Hidden]:
    hidden["guesses"].append(0)
    return len(hidden["guesses"]), hidden


END = Tool.from_callable(lambda: "ended", name="end", terminal=True)


def test_a_weight_makes_them_count() -> None:
    functions = make_reward_functions(
        [
            {"type": "tool_validity", "weight": 0.5},
            {"type": "tool_efficiency", "expected_calls": 1, "weight": 0.25},
        ]
    )
    env = GuessingGame(reward_functions=functions)
    calls = (call("double", number=1), call("nothing"), call("guess", number=5), call("double", number=2))
    result = env.step(start(env), Action("", calls))
    assert result.rewards["tool_validity"].reward == 3 / 4
    assert result.rewards["tool_efficiency"].reward == 1 / 4
    assert result.rewards.total == pytest.approx(1.0 + 0.5 * 3 / 4 + 0.25 / 4)
    assert [s.name for s in result.rewards] == ["found", "tool_validity", "tool_efficiency"]


def test_options_of_the_rewards_are_checked() -> None:
    assert ToolValidityReward().weight == 1.0
    with pytest.raises(InvalidOption, match="positive integer"):
        ToolEfficiencyReward(0)


def test_a_tool_that_keeps_something_in_its_own_object_is_found_by_the_conformance_kit() -> None:
    class Leaky(GuessingGame):
        def __init__(self) -> None:
            calls: list[int] = []

            def tick() -> int:
                calls.append(1)
                return len(calls)

            super().__init__(executor=SimpleToolExecutor([tick]))

    report = check_environment(Leaky, raise_on_violation=False)
    assert not report.ok
