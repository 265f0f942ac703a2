"""Values seen at the upstream (verifiers 0.4.0)."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Make, children, play

from llenvs import Action, State
from llenvs.core.tools.call import ToolStatus
from llenvs.inference.scripted import ScriptedBackend


def scores(rewards: Any) -> dict[str, float | None]:
    return {signal.name: signal.reward for signal in rewards}


@pytest.mark.parametrize("mode", ["auto", "episode"])
def test_single_turn_in_place_and_as_an_episode(make: Make, mode: str) -> None:
    env = make("v1_doubler", mode=mode)
    assert env.spec.metadata["mode"] == ("pure" if mode == "auto" else "episode")
    assert (len(env), env.spec.is_multi_turn) == (20, mode == "episode")
    state, info = env.reset(options={"task_index": 3})
    assert info["idx"] == 3
    assert [(m.role, m.content) for m in state.observation.messages] == [
        ("system", "Be short."), ("user", "What is 3+3 ?"),
    ]  # fmt: skip
    for text, total, exact, length in (
        ("<answer>6</answer>", 1.91, 1.0, 0.18),
        ("6", 1.995, 1.0, 0.01),
        ("<answer>7</answer>", -0.09, 0.0, 0.18),
        ("", 0.0, 0.0, 0.0),
    ):
        result = env.step(state, Action(text))
        assert scores(result.rewards) == {
            "exact": exact, "length": length, "turns": 1.0, "total_reward": pytest.approx(total),
        }  # fmt: skip
        assert result.rewards.total == pytest.approx(total)
        assert [signal.weight for signal in result.rewards] == [2.0, -0.5, 0.0, 0.0]
        assert result.info["stop_condition"] == "agent_completed"
        assert (result.terminated, result.truncated) == (True, False)
        assert env.spec.is_success(result.rewards) is (total >= 0.5)


def test_an_environment_of_several_turns(make: Make) -> None:
    env = make("v1_guesser")
    state, _ = env.reset(options={"task_index": 0})
    assert state.observation.prompt == "guess 1..10"
    middle = env.step(state, Action("5")).next_state
    assert middle.observation.prompt == "higher"
    won = env.step(middle, Action("7"))
    assert scores(won.rewards) == {"won": 1.0, "turns": 2.0, "total_reward": 1.0}
    assert (won.terminated, won.info["stop_condition"]) == (True, "user_closed")
    assert env.step(middle, Action("6")).next_state.observation.prompt == "higher"
    lost = play(env, 0, "1", "2", "3", "4")
    assert scores(lost.rewards) == {"won": 0.0, "turns": 4.0, "total_reward": 0.0}
    assert (lost.truncated, lost.terminated, lost.info["stop_condition"]) == (True, False, "max_turns")
    assert env.spec.max_steps == 4
    assert play(make("v1_guesser", max_steps=2), 1, "9", "9").truncated


def test_tools(make: Make) -> None:
    env = make("v1_bump")
    state, _ = env.reset(options={"task_index": 0})
    (bump,) = state.observation.available_tools
    assert (bump.name, bump.description) == ("bump", "Add n to the total.")
    assert env.available_tools == (bump,)
    seen = []
    for arguments in ({"n": 2}, {"n": 3}, {"n": "x"}):
        state = env.step(state, Action.from_tool_call("bump", arguments)).next_state
        seen += [(r.call_id, r.content.split("\n")[0], r.status) for r in state.observation.tool_results]
    assert seen == [
        ("call_0", "2", ToolStatus.SUCCESS),
        ("call_0", "5", ToolStatus.SUCCESS),
        (
            "call_0",
            "Error executing tool bump: 1 validation error for bumpArguments",
            ToolStatus.INVALID_ARGUMENTS,
        ),
    ]
    unknown = env.step(state, Action.from_tool_call("bumb", {})).next_state
    (answer,) = unknown.observation.tool_results
    assert (answer.content, answer.status) == ("error: unknown tool 'bumb'", ToolStatus.UNKNOWN_TOOL)
    # the state before that call, stepped again: another tool server, the same calls
    result = env.step(State.from_json(state.to_json()), Action("done"))
    assert scores(result.rewards) == {"reached": 1.0, "total_reward": 1.0}
    assert env.stats.replayed == 3
    assert any("v1_bump" in command for command in children())
    env.close()
    assert not any("v1_bump" in command for command in children())


def test_tools_that_all_tasks_share(make: Make) -> None:
    env = make("v1_library", max_live=1)
    state, _ = env.reset(options={"task_index": 0})
    (find,) = state.observation.available_tools
    assert find.name == "catalogue_find"
    found = env.step(state, Action.from_tool_call("catalogue_find", {"word": "moby"})).next_state
    assert [r.content for r in found.observation.tool_results] == ["Moby-Dick"]
    missing = env.step(state, Action.from_tool_call("catalogue_find", {"word": "odyssey"})).next_state
    (answer,) = missing.observation.tool_results
    assert answer.status is ToolStatus.ERROR
    assert env.step(found, Action("Moby-Dick")).rewards.total == 1.0
    state, _ = env.reset(options={"task_index": 1})
    assert env.step(state, Action("Moby-Dick")).rewards.total == 0.0
    assert sum("v1_library" in command for command in children()) == 1


def test_two_seats(make: Make) -> None:
    lines = iter(["A flight, please.", "To Oslo.", "###DONE###"])
    asked: list[Any] = []

    def user(request: Any) -> str:
        asked.append(request)
        return next(lines)

    env = make("user-sim+v1_booking", env_llm=ScriptedBackend(user), max_live=1)
    assert (env.spec.metadata["seat"], env.spec.metadata["seats"]) == ("assistant", ["assistant", "user"])
    assert env.spec.deterministic is False
    state, _ = env.reset(options={"task_index": 0})
    assert "You want a flight to Oslo." in asked[0].messages[0].content
    assert [(m.role, m.content) for m in state.observation.messages] == [
        ("system", "You book flights."), ("user", "A flight, please."),
    ]  # fmt: skip
    middle = env.step(state, Action("Where to?")).next_state
    assert middle.observation.prompt == "To Oslo."
    result = env.step(middle, Action("Booked: Oslo."))
    assert scores(result.rewards) == {"booked": 1.0, "user_turns": 3.0, "total_reward": 1.0}
    assert result.info["stop_condition"] == "user_closed"
    # the user's lines are part of the state: nobody is asked again
    lines = iter(["###DONE###"])
    again = env.step(State.from_json(middle.to_json()), Action("Booked: Rome."))
    assert again.rewards["booked"].reward == 0.0
    assert len(asked) == 4


def test_keyed_rewards(make: Make) -> None:
    env = make("v1_strange", taskset_params={"kind": "keyed"})
    totals = {text: play(env, 0, text).rewards.total for text in ("4", "four", "")}
    assert totals == {"4": 2.0, "four": 1.5, "": 0.5}
    assert scores(play(env, 0, "4").rewards) == {
        "nonempty": 1.0, "has_digit": 1.0, "short": 1.0, "total_reward": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "episode"])
def test_functions_that_raise_are_errors_and_the_others_scores(make: Make, mode: str) -> None:
    env = make("v1_strange", taskset_params={"kind": "failing"}, mode=mode)
    result = play(env, 0, "x")
    assert scores(result.rewards) == {
        "late": 1.0, "nonempty": 1.0, "broken": None, "words": None, "seconds": None, "total_reward": None,
    }  # fmt: skip
    assert result.rewards["broken"].metadata == {"error": "LookupError: no such table"}
    assert result.rewards["words"].metadata["error"].startswith("ValueError: could not convert string to float")
    assert (result.rewards["seconds"].weight, result.rewards["seconds"].metadata) == (
        0.0,
        {"error": "ValueError: 1970"},
    )
    assert (
        result.rewards["total_reward"].metadata["error"].startswith("broken: LookupError: no such table; words:")
    )
    assert result.rewards.total == 4.0
    assert env.spec.is_success(result.rewards) is None


def test_what_needs_a_runtime_has_one(make: Make) -> None:
    env = make("v1_strange", taskset_params={"kind": "runtime"})
    assert env.spec.metadata["mode"] == "episode"
    assert play(env, 0, "x").rewards["wrote"].reward == 1.0
    assert play(make("v1_strange", taskset_params={"kind": "prepared"}), 0, "x").rewards["found"].reward == 1.0


def test_tasks_by_size_and_seed(make: Make) -> None:
    def prompts(**options: Any) -> list[str]:
        env = make("v1_doubler", **options)
        return [env.reset(options={"task_index": i})[0].observation.prompt for i in range(len(env))]

    assert prompts(size=2) == ["What is 0+0 ?", "What is 1+1 ?"]
    from v1_doubler import Doubler, DoublerConfig

    upstream = [task.data.prompt for task in Doubler(DoublerConfig(id="v1_doubler")).shuffle(seed=3)]
    assert prompts(seed=3) == upstream != prompts()
    assert prompts(seed=3, size=4) == upstream[:4]
    assert len(make("v1_doubler", taskset_params={"num_tasks": 7})) == 7
    assert play(make("v1_endless", size=5), 4, "4").rewards.total == 1.0


@pytest.mark.parametrize("mode", ["auto", "episode"])
def test_a_judge_is_any_backend(make: Make, mode: str) -> None:
    asked: list[str] = []

    def judge(request: Any) -> str:
        asked.append(request.messages[-1].content)
        return "yes" if "Twelve" in request.messages[-1].content else "perhaps"

    judges = {"judges": [{"id": "reference", "weight": 2.0}]}
    env = make("v1_doubler", task_params=judges, judge=ScriptedBackend(judge), mode=mode)
    assert env.spec.deterministic is False
    right = play(env, 6, "Twelve")
    assert (right.rewards["reference"].reward, right.rewards["reference"].weight) == (1.0, 2.0)
    assert "What is 6+6 ?" in asked[0]
    unclear = play(env, 6, "12")  # a judge that gives no verdict is no zero
    assert unclear.rewards["reference"].reward is None
    assert "judge returned no yes/no verdict: 'perhaps'" in unclear.rewards["reference"].metadata["error"]
    assert unclear.rewards["exact"].reward == 1.0


@pytest.mark.parametrize("mode", ["auto", "episode"])
def test_mathematics_off_the_main_thread(make: Make, mode: str) -> None:
    """The upstream's scorer gives 0 for every answer there: the alarm that it uses is the main thread's."""
    env = make("v1_strange", taskset_params={"kind": "mathematics"}, mode=mode)
    assert play(env, 0, r"\boxed{0.5}").rewards["equal"].reward == 1.0
    assert play(env, 0, r"\boxed{2}").rewards["equal"].reward == 0.0
