"""Who talks to the agent: models through our backends and through litellm, scripts, nobody; and the judge."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tau_play import begin, call, play

import llenvs
from llenvs import Action, State
from llenvs.core.errors import InvalidAction, InvalidOption, UnknownBackend, UpstreamFailed
from llenvs.core.generation import Generation
from llenvs.core.simulator import Recipe
from llenvs.core.tools import ToolCall
from llenvs.evaluation import run_evaluation
from llenvs.inference import (
    BackendError,
    GenerationRequest,
    PromptedToolsBackend,
    SamplingParams,
    ScriptedBackend,
)
from llenvs_tau.grading import Grader
from llenvs_tau.judge import Judge
from llenvs_tau.upstream import upstream

Make = Any
STOP = "###STOP###"


def test_a_backend_gets_the_upstreams_prompt_and_the_conversation_from_its_side(tau: Make) -> None:
    asked: list[GenerationRequest] = []

    def answer(request: GenerationRequest) -> str:
        asked.append(request)
        return ["I want to change a flight.", "Yes.", f"Thanks. {STOP}"][len(asked) - 1]

    env = tau("airline", user_backend=ScriptedBackend(answer))
    assert env.spec.deterministic is False
    state, _ = env.reset(seed=7, options={"task_index": 3})
    assert state.observation.prompt == "I want to change a flight."
    looked = env.step(state, call("list_all_airports"))
    talked = env.step(looked.next_state, Action("Shall I?"))
    assert (talked.terminated, talked.next_state.observation.prompt) == (False, "Yes.")
    ended = env.step(talked.next_state, Action("Done."))
    assert (ended.terminated, ended.info["termination_reason"]) == (True, "user_stop")

    task = env._tasks[3]
    theirs = upstream().user.UserSimulator(tools=None, instructions=str(task.user_scenario), llm="x")
    last = asked[-1].messages
    assert last[0].role == "system"
    assert last[0].content == theirs.system_prompt
    assert str(task.user_scenario) in last[0].content
    assert [(m.role, m.content) for m in last[1:]] == [
        ("user", "Hi! How can I help you today?"),
        ("assistant", "I want to change a flight."),
        ("user", "Shall I?"),
        ("assistant", "Yes."),
        ("user", "Done."),
    ]
    assert (asked[0].sampling.temperature, asked[0].sampling.seed) == (0.0, 7)
    assert all(str(task.user_scenario) not in m.content for m in ended.next_state.observation.messages)


def test_a_backend_calls_the_users_tools(tau: Make) -> None:
    asked: list[GenerationRequest] = []

    def answer(request: GenerationRequest) -> Any:
        asked.append(request)
        if request.messages[-1].role == "tool":
            return "It is off now."
        if len(asked) == 1:
            return "No service."
        return Generation("", (ToolCall("toggle_airplane_mode", {}, "u1"),))

    env = tau("telecom", user_backend=ScriptedBackend(answer))
    state = begin(env)
    assert len(asked[0].tools) == 30
    result = env.step(state, Action("Please turn off airplane mode."))
    assert result.next_state.observation.prompt == "It is off now."
    assert result.info["user_tool_calls"] == [{"name": "toggle_airplane_mode", "arguments": {}}]
    assert [m.role for m in asked[-1].messages] == ["system", "user", "assistant", "user", "assistant", "tool"]
    assert "Airplane" in asked[-1].messages[-1].content
    assert [m.role for m in result.next_state.observation.messages] == [
        "system", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


def test_replies_of_a_model_are_in_the_recipe_and_repeated(tau: Make) -> None:
    """A state is reached again, also from JSON in a fresh environment, without asking the model again."""
    count = iter(range(100))
    options: dict[str, Any] = {
        "user_backend": ScriptedBackend(lambda r: f"Reply {next(count)}."),
        "max_snapshots": 0,
    }
    env = tau("retail", **options, max_live=1)
    state = begin(env)
    one = env.step(state, Action("Tell me more.")).next_state
    two = env.step(one, call("list_all_product_types")).next_state
    assert [turn.replies for turn in two.hidden["recipe"].turns] == [
        ({"text": "Reply 0.", "calls": []},), ({"text": "Reply 1.", "calls": []},), (),
    ]  # fmt: skip
    other = begin(env)  # the only simulator is elsewhere now
    assert other.observation.prompt == "Reply 2."
    again = env.step(two, Action("And?"))
    assert again.next_state.observation.prompt == "Reply 3."
    assert env.stats.replayed == 2

    fresh = tau("retail", **options)
    there = fresh.step(State.from_json(two.to_json()), Action("And?")).next_state
    assert [m.content for m in there.observation.messages if m.role == "user"] == [
        "Reply 0.",
        "Reply 1.",
        "Reply 4.",
    ]


def test_a_recorded_reply_that_is_none_is_refused(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"] * 3)
    state = begin(env)
    recipe = state.hidden["recipe"]
    for reply in ("text", {"text": 3, "calls": []}, {"text": "", "calls": [["a"]]}):
        turn = replace(recipe.turns[0], replies=(reply,))
        broken = Recipe(recipe.environment, 0, 0, (turn,))
        with pytest.raises(InvalidAction, match="a reply of the user that is none"):
            env.step(replace(state, hidden={**state.hidden, "recipe": broken}), Action("x"))


def test_a_model_that_says_nothing_is_asked_again_and_then_an_error(tau: Make) -> None:
    answers = iter(["", "  ", "Hi."])
    env = tau("mock", user_backend=ScriptedBackend(lambda request: next(answers)))
    assert begin(env).observation.prompt == "Hi."
    silent = tau("mock", user_backend=ScriptedBackend(""))
    with pytest.raises(UpstreamFailed, match=r"asking the simulated user: it said nothing \(4 times\)"):
        begin(silent)


def test_an_error_of_the_backend_is_its_own(tau: Make) -> None:
    def broken(request: GenerationRequest) -> str:
        raise BackendError("scripted", "no credit")

    with pytest.raises(BackendError, match="no credit"):
        begin(tau("mock", user_backend=ScriptedBackend(broken)))


def test_backends_by_name(tau: Make) -> None:
    env = tau("mock", user_backend={"backend": "scripted", "script": ["Hi", f"Bye {STOP}"]})
    assert play(env, [Action("Hello")])[-1].terminated
    with pytest.raises(UnknownBackend, match="did you mean 'openai'"):
        tau("mock", user_backend={"backend": "opnai", "model": "x"})
    with pytest.raises(InvalidOption, match=r"user_backend: must be a backend, or a mapping"):
        tau("mock", user_backend="openai")


@pytest.mark.filterwarnings("ignore::UserWarning")  # litellm's own, when it first completes anything
def test_the_upstreams_own_user_through_litellm(tau: Make) -> None:
    env = tau("mock", user_model="gpt-4.1", user_model_args={"mock_response": "Well, hello."})
    result = play(env, [Action("Hi")])[-1]
    assert [m.content for m in result.next_state.observation.messages[2:]] == [
        "Well, hello.",
        "Hi",
        "Well, hello.",
    ]


def test_scripts(tau: Make) -> None:
    env = tau("mock", user_script={"create_task_1": ["A"], "update_task_1": ["B"]}, tasks=["update_task_1"])
    assert begin(env).observation.prompt == "B"
    ended = play(env, [Action("x")])[-1]
    assert (ended.terminated, ended.next_state.observation.prompt) == (True, STOP)

    def echo(conversation: Any) -> Any:
        return f"You said: {conversation[-1].content}"

    assert begin(tau("mock", user_script=echo)).observation.prompt == "You said: Hi! How can I help you today?"
    env = tau("telecom", user_script=["Hi", Action(tool_calls=(ToolCall("toggle_data"),)), "Done."])
    assert play(env, [Action("Toggle it.")])[-1].info["user_tool_calls"] == [
        {"name": "toggle_data", "arguments": {}}
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "user: nobody talks to the agent"),
        ({"user_script": ["a"], "user_model": "x"}, "exclude each other"),
        ({"user": "backend"}, "user_backend: is needed"),
        ({"user": "solo", "user_script": ["a"]}, 'does not go with user="solo"'),
        ({"user_script": "hello"}, "user_script: must be a list of replies"),
        ({"user_script": ["a", ""]}, "user_script: is an empty reply"),
        ({"user_script": ["a", {"say": "b"}]}, "user_script: is no reply"),
        ({"user_script": [{"tool_calls": [{"tool": "x"}]}]}, "user_script: is no tool call"),
        ({"user_script": {"create_task_1": ["a"]}}, "has no replies for this task"),
        ({"user_script": ["a"], "user_backend": None, "judge_backend": 3}, "judge_backend: must be a backend"),
        ({"user_script": ["a"], "judge_backend": ScriptedBackend(""), "judge_sampling": 1}, "judge_sampling"),
    ],
)
def test_users_that_cannot_be(tau: Make, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        tau("mock", **options)


def test_a_user_who_stops_at_once(tau: Make) -> None:
    """The upstream grades it; so does the first step, which is not taken."""
    env = tau("airline", user_script=[STOP])
    state = begin(env, "0")
    assert state.metadata.info["termination_reason"] == "user_stop"
    result = env.step(state, call("list_all_airports"))
    assert (result.terminated, result.rewards["reward"].reward) == (True, 1.0)
    assert result.next_state.observation.tool_results[0].content == "(not run: the episode is over)"


def test_instructions_are_said_at_once(tau: Make) -> None:
    env = tau("retail", user="instructions")
    state = begin(env)
    assert state.observation.prompt.startswith(str(env._tasks[0].user_scenario.instructions))
    again = env.step(state, Action("Shall I?"))
    assert (again.terminated, STOP in again.next_state.observation.prompt) == (False, True)
    end = env.step(state, Action(f"Done. {STOP}"))
    assert (end.terminated, end.info["termination_reason"]) == (True, "agent_stop")


@pytest.mark.parametrize("met", [True, False])
def test_a_judge_decides_assertions_in_natural_language(tau: Make, met: bool) -> None:
    asked: list[GenerationRequest] = []

    def verdict(request: GenerationRequest) -> str:
        asked.append(request)
        return json.dumps({"results": [{"expectedOutcome": "x", "reasoning": "y", "metExpectation": met}]})

    env = tau("mock", user_script=["Hi"], judge_backend=ScriptedBackend(verdict))
    end = play(
        env, [call("create_task", user_id="user_1", title="Important Meeting"), Action("Your task is there.")]
    )[-1]
    signal = end.rewards["nl_assertion"]
    assert (signal.reward, signal.metadata) == (float(met), {"in_basis": False, "met": [met]})
    assert end.rewards["reward"].reward == 1.0  # it does not count in this task
    assert "The agent confirmed the task was created successfully" in asked[0].messages[1].content
    assert "Your task is there." in asked[0].messages[1].content
    recipe = end.next_state.hidden["recipe"]
    assert len(recipe.turns[-1].replies) == 2  # the user's, and the judge's


def test_a_judge_that_cannot_be_read_is_an_error(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"], judge_backend=ScriptedBackend("I think so."))
    end = play(env, [Action("x")])[-1]
    assert end.rewards["nl_assertion"].reward is None
    assert end.rewards["nl_assertion"].metadata["error"].startswith("JSONDecodeError")


def test_where_the_judge_counts_it_is_needed_or_left_out(tau: Make) -> None:
    """As in tau2 1.0, whose retail tasks are graded so; here one task of mock is."""
    env = tau("mock", user_script=["Hi"])
    task = env._tasks[2].model_copy(deep=True)
    task.evaluation_criteria.reward_basis = [upstream().tasks.RewardType("NL_ASSERTION")]

    def reward(**options: Any) -> Any:
        return Grader(env._domain, **options).grade(task, [], "user_stop", lambda ask: ask())[0]

    assert reward().reward is None
    assert "give judge_backend" in reward().metadata["error"]
    assert reward(nl_assertions="skip").reward == 1.0
    for met in (True, False):
        verdict = json.dumps({"results": [{"expectedOutcome": "x", "reasoning": "y", "metExpectation": met}]})
        judge = Judge(upstream().nl_evaluator, ScriptedBackend(verdict), SamplingParams(), owned=False)
        assert reward(judge=judge).reward == float(met)


def test_an_assertion_that_the_upstream_cannot_check_is_no_zero(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"])
    end = play(env, [Action("Bye.")], "create_task_1_with_env_assertions")[-1]
    reward = end.rewards["reward"]
    assert (reward.reward, end.rewards["action"].reward) == (None, 0.0)
    assert "ValueError: Task task_2 not found" in reward.metadata["error"]


def test_an_evaluation_runs_with_a_simulated_user() -> None:
    arguments = '{"task_id": "task_1", "status": "completed"}'
    calls = f'<tool_call>\n{{"name": "update_task_status", "arguments": {arguments}}}\n</tool_call>'
    agent = PromptedToolsBackend(
        ScriptedBackend(lambda r: "Done." if any("task_1" in m.content for m in r.messages[3:]) else calls)
    )
    user = {"backend": "scripted", "script": ["Finish task_1", STOP]}
    with llenvs.make("tau/mock", user_backend=user, tasks=["update_task_1"]) as env:
        result = run_evaluation(env, agent, log=())
    assert result.success_rate == 1.0
