"""Which tasks, which limits; and states that belong to another selection."""

from __future__ import annotations

from typing import Any

import pytest
from tau_play import begin, call, play

from llenvs import Action
from llenvs.core.errors import InvalidAction, InvalidOption, TaskIndexOutOfRange, UnknownOption
from llenvs.core.tools import ToolCall, ToolStatus
from llenvs_tau.environment import UnknownTask

Make = Any


def test_selections_of_tasks(tau: Make) -> None:
    assert tau("retail", user="instructions", size=3).task_ids == ("0", "1", "2")
    assert tau("retail", user="instructions", tasks=["5", "2"]).task_ids == ("5", "2")
    shuffled = tau("retail", user="instructions", seed=1, size=3).task_ids
    assert shuffled == tau("retail", user="instructions", seed=1).task_ids[:3] != ("0", "1", "2")
    assert (
        tau("retail", user="instructions", split="test").task_ids
        == tau("retail:test", user="instructions").task_ids
    )
    train, test = (set(tau(f"telecom:{s}", user="solo").task_ids) for s in ("train", "test"))
    assert train | test == set(tau("telecom", user="solo").task_ids)
    assert not train & test
    assert len(tau("mock", user="solo")) == 7


def test_wrong_selections_are_named(tau: Make) -> None:
    with pytest.raises(UnknownTask, match="did you mean 'update_task_1'"):
        tau("mock", user="instructions", tasks=["update_task1"])
    with pytest.raises(InvalidOption, match=r"split: airline has no such split, got 'dev'; valid: .*train"):
        tau("airline", user="instructions", split="dev")
    with pytest.raises(InvalidOption, match="the name 'airline:train' says another one"):
        tau("airline:train", user="instructions", split="test")
    with pytest.raises(InvalidOption, match="mock has no such split, got 'test'; valid: none at all"):
        tau("mock", user="instructions", split="test")
    with pytest.raises(UnknownOption, match="did you mean 'max_steps'"):
        tau("mock", user="instructions", maxsteps=4)
    with pytest.raises(InvalidOption, match="domain_options"):
        tau("mock", user="instructions", domain_options={"retrieval_variant": "bm25"})
    with pytest.raises(TaskIndexOutOfRange):
        tau("mock", user="instructions").reference_episode(9)


def test_a_state_of_another_selection_is_refused(tau: Make) -> None:
    state = begin(tau("retail", user_script=["Hi"], seed=1))
    with pytest.raises(InvalidAction, match="another selection of tasks"):
        tau("retail", user_script=["Hi"]).step(state, Action("x"))


def test_limits(tau: Make) -> None:
    wrong = call("no_such_tool")
    env = tau("mock", user_script=["Hi"] * 20, max_errors=2)
    one, two = play(env, [wrong, wrong])
    assert (one.done, two.truncated, two.info["termination_reason"]) == (False, True, "too_many_errors")
    env = tau("mock", user_script=["Hi"] * 20, max_messages=4)
    one, two = play(env, [call("get_users"), Action("Hm")])
    # the user's reply comes after the limit; the upstream looks once the agent has spoken
    assert (one.info["messages"], two.info["messages"], two.truncated) == (3, 4, True)
    assert two.info["termination_reason"] == "max_steps"
    env = tau("mock", user_script=["Hi"] * 20, max_steps=2)
    assert [r.truncated for r in play(env, [Action("a"), Action("b")])] == [False, True]


def test_an_empty_action_is_an_error_of_the_agent(tau: Make) -> None:
    for action in (Action(""), Action(" \n")):
        (result,) = play(tau("mock", user_script=["Hi"]), [action])
        assert (result.terminated, result.info["termination_reason"]) == (True, "agent_error")
        assert result.rewards["reward"].reward == 0.0


def test_a_call_that_cannot_be_read_is_answered_and_counted(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"])
    broken = ToolCall("create_task", {}, "b", "The arguments are not valid: no JSON.", "{")
    good = ToolCall("get_users", {}, "g")
    both, alone = play(env, [Action("", (broken, good)), Action("", (broken,))])
    results = both.next_state.observation.tool_results
    assert [(r.call_id, r.status) for r in results] == [
        ("b", ToolStatus.INVALID_ARGUMENTS),
        ("g", ToolStatus.SUCCESS),
    ]
    assert results[0].content == broken.problem
    assert (both.info["errors"], alone.info["errors"]) == (1, 2)
    assert alone.next_state.observation.messages[-1].content == broken.problem
    end = env.step(alone.next_state, Action("Bye"))
    assert end.rewards["tool_validity"].reward == pytest.approx(1 / 3)


def test_text_and_calls_together_are_sent_as_they_are(tau: Make) -> None:
    """The upstream lets a message be both; the text then is not heard, but counts as said."""
    env = tau("retail", user_script=["Hi"])
    actions = list(tau("retail", user="instructions").reference_episode(2).actions)
    told = actions[-1].text
    actions[0] = Action(told, actions[0].tool_calls)
    actions[-1] = Action("Goodbye.")
    assert play(env, actions, 2)[-1].rewards["reward"].reward == 1.0


def test_calls_without_ids_get_some(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"])
    (result,) = play(env, [Action("", (ToolCall("get_users"), ToolCall("get_users")))])
    ids = [r.call_id for r in result.next_state.observation.tool_results]
    assert ids == ["call_0_0", "call_0_1"]
    assert [c.id for c in result.resolved_action.tool_calls] == ids
    assert [m.tool_call_id for m in result.next_state.observation.messages[-2:]] == ids


def test_what_a_tool_keeps_of_its_arguments_is_its_own(tau: Make) -> None:
    passengers = [{"first_name": "A", "last_name": "B", "dob": "1990-01-01"}]
    arguments = {"reservation_id": "JG7FMM", "passengers": passengers}
    env = tau("airline", user_script=["Hi"])
    state = begin(env)
    action = Action.from_tool_call("update_reservation_passengers", arguments)
    first = env.step(state, action)
    passengers[0]["first_name"] = "C"
    assert action.tool_calls[0].arguments["passengers"][0]["first_name"] == "C"
    again = env.step(first.next_state, call("get_reservation_details", reservation_id="JG7FMM"))
    assert '"C"' not in again.next_state.observation.tool_results[0].content


def test_surrogates_reach_the_upstream_as_question_marks(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"] * 3)
    assert not play(env, [Action("\ud800 hm")])[-1].done
