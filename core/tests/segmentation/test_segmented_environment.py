"""The environment: segments in, the base environment's own results out, states as values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llenvs.core import (
    Action,
    CallableReward,
    ChatMessage,
    CustomSegmenter,
    Environment,
    FormatReward,
    LengthReward,
    LineSegmenter,
    RewardType,
    SegmentedEnvironment,
    SentenceSegmenter,
    Signal,
    State,
    ToolCall,
    Trajectory,
    make,
)
from llenvs.core.errors import EpisodeOver, InvalidAction, InvalidOption, ReplayDiverged
from llenvs.core.segmentation import Response, final_segment, user_feedback
from llenvs.testing import check_environment, check_walk

ANSWER = "First, count the animals. There are 2 dogs. <answer>1</answer>"


def mentions_dogs(state: State[Any], action: Action, next_state: State[Any]) -> float:
    return float("dogs" in action.text)


def began(env: Environment[Any], task: int = 0) -> State[Any]:
    return env.reset(options={"task_index": task})[0]


# -- a single turn ----------------------------------------------------------------------------------------


def test_replay_gives_a_result_for_each_step(addition: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter(), reward_functions=[mentions_dogs])
    replay = env.replay(began(env), ANSWER)
    assert replay.segments == ("First, count the animals.", " There are 2 dogs.", " <answer>1</answer>")
    assert "".join(replay.segments) == ANSWER
    assert [r.rewards.names for r in replay] == [
        ("mentions_dogs",),
        ("mentions_dogs",),
        ("score", "mentions_dogs"),
    ]
    assert [r.done for r in replay] == [False, False, True]
    assert replay.rewards == (0.0, 1.0, 1.0)
    assert replay.total_reward == 2.0
    assert replay[-1].resolved_action == Action("1")
    assert replay[0].rewards["mentions_dogs"].reward_type is RewardType.PROCESS
    assert len(replay) == 3
    assert replay[:2] == tuple(replay)[:2]
    assert env.spec.is_success(replay[-1].rewards) is True


def test_the_base_environment_sees_what_it_would_see_alone(addition: Any) -> None:
    base = addition()
    env = SegmentedEnvironment(base, SentenceSegmenter())
    alone = base.step(began(base), Action(ANSWER))
    last = env.replay(began(env), ANSWER)[-1]
    assert last.rewards == alone.rewards
    assert (last.terminated, last.truncated, last.resolved_action, last.info) == (
        alone.terminated,
        alone.truncated,
        alone.resolved_action,
        alone.info,
    )
    assert last.next_state.observation == alone.next_state.observation
    assert env.base_state(last.next_state) == alone.next_state
    assert env.ground_truth(began(env)) == base.ground_truth(began(base)) == "1"
    assert began(env).observation == began(base).observation
    assert env.reset(seed=7)[1] == base.reset(seed=7)[1]


def test_the_observation_shows_what_is_said(addition: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter())
    state = env.step(began(env), Action("First.")).next_state
    state = env.step(state, Action(" Second.")).next_state
    assert state.observation.prompt == "What is 0 + 1?"
    assert state.observation.messages == (
        ChatMessage.user("What is 0 + 1?"),
        ChatMessage.assistant("First. Second."),
    )
    assert env.response(state) == Response((ChatMessage.user("What is 0 + 1?"),), ("First.", " Second."), (), 2)
    assert state.metadata.step == 2


def test_three_ways_to_end_a_response(addition: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter())
    state = env.step(began(env), Action("<answer>1</answer>")).next_state
    assert not state.is_terminal
    for action in (env.final(), env.final(" Done."), Action(""), Action("", (ToolCall("no_such_tool"),))):
        result = env.step(state, action)
        assert result.terminated
        assert result.rewards.total == 1.0
    assert env.replay(began(env), "").rewards == (0.0,)


def test_process_rewards_of_any_reward_function(addition: Any) -> None:
    def critic(state: State[Any], action: Action, next_state: State[Any]) -> tuple[float, str]:
        return len(Response.of(state).segments), f"judged {action.text!r} calling {len(action.tool_calls)} tools"

    functions = [LengthReward(10, weight=0.5), CallableReward(critic, name="critic", weight=0.0), FormatReward()]
    env = SegmentedEnvironment(addition(), LineSegmenter(), reward_functions=functions)
    replay = env.replay(began(env), "a long line of text\n<answer>1</answer>\n")
    assert [r.rewards["length"].reward for r in replay] == [0.0, pytest.approx(0.1)]
    assert [r.rewards["critic"].reward for r in replay] == [0.0, 1.0]
    assert replay[1].rewards["critic"].feedback == "judged '<answer>1</answer>\\n' calling 0 tools"
    assert [r.rewards["format"].reward for r in replay] == [0.0, 1.0]
    assert replay.total_reward == pytest.approx(0.5 * 0.1 + 2.0)
    for transition in replay.trajectory:
        assert transition.state is not None
        again = env.compute_rewards(transition.state, transition.action, transition.next_state)
        assert again == transition.rewards


def test_names_of_process_rewards_must_differ_from_the_base_signals(addition: Any) -> None:
    env = SegmentedEnvironment(
        addition(), LineSegmenter(), reward_functions=CallableReward(mentions_dogs, name="score")
    )
    with pytest.raises(InvalidOption, match="must differ from the signals"):
        env.replay(began(env), "a")


def test_the_last_segment_allowed_ends_the_response(addition: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter(), max_segments=2)
    assert env.spec.max_steps == 2
    state = env.step(began(env), Action("One.")).next_state
    assert env.step(state, Action(" Two.")).terminated
    assert env.step(state, user_feedback("No.")).terminated
    replay = env.replay(began(env), ANSWER)
    assert replay.segments == ("First, count the animals.", " There are 2 dogs. <answer>1</answer>")
    assert replay.total_reward == 1.0
    assert env.replay(began(env), ANSWER, end=False).segments == (ANSWER,)


# -- several turns ----------------------------------------------------------------------------------------


def test_a_multi_turn_episode(guessing: Any) -> None:
    base = guessing()
    env = SegmentedEnvironment(base, SentenceSegmenter(), max_segments=10)
    assert env.spec.max_steps == 30
    replay = env.replay(began(env, 4), "I start in the middle. No, lower. 3")
    state = replay.final_state
    assert not replay.done
    assert state.observation.prompt == "Higher."
    assert state.observation.messages == ()
    state = env.step(state, Action("Well.")).next_state
    assert state.observation.messages == (
        ChatMessage.user("Guess a number from 1 to 9.\n\nYour guess?"),
        ChatMessage.assistant("I start in the middle. No, lower. 3"),
        ChatMessage.user("Higher."),
        ChatMessage.assistant("Well."),
    )
    replay = env.replay(state, " It is 5.")
    assert replay.done
    assert replay[-1].rewards["found"].reward == 1.0
    whole = Trajectory(began(env, 4))
    for action in (Action("I start. "), env.final("3"), Action("Well."), env.final(" It is 5.")):
        whole = whole.step(env, action)
    assert [a.text for a in env.base_trajectory(whole).actions] == ["I start. 3", "Well. It is 5."]


def test_feedback_is_a_user_turn_within_the_response(guessing: Any) -> None:
    env = SegmentedEnvironment(guessing(), SentenceSegmenter(), reward_functions=[mentions_dogs])
    trajectory = Trajectory(began(env, 4))
    for action in (Action("It is 3."), user_feedback("Sure?"), Action("No."), env.final(" It is 5.")):
        trajectory = trajectory.step(env, action)
    assert trajectory.states[2].observation.messages[1:] == (
        ChatMessage.assistant("It is 3."),
        ChatMessage.user("Sure?"),
    )
    assert [s.reward for s in trajectory.transitions[1].rewards] == [None]
    assert trajectory.states[3].observation.messages[-1] == ChatMessage.assistant("No.")
    assert trajectory.done
    base = env.base_trajectory(trajectory)
    assert [a.text for a in base.actions] == ["It is 3.\n\nNo. It is 5."]
    assert base.total_reward == trajectory.total_reward == 1.0


def test_tools_end_a_response(locked: Any) -> None:
    env = SegmentedEnvironment(locked(), SentenceSegmenter())
    assert [t.name for t in env.available_tools] == ["dial", "leave"]
    call = ToolCall("dial", {"number": 2}, "x")
    replay = env.replay(began(env, 2), Action("I look. I dial.", (call,)))
    assert replay.segments == ("I look.", " I dial.")
    assert replay[-1].rewards["open"].reward == 0.0
    assert [r.content for r in replay.final_state.observation.tool_results] == ["locked"]
    state = env.step(replay.final_state, Action("Again.")).next_state
    assert [m.role for m in state.observation.messages] == ["user", "assistant", "tool", "assistant"]
    assert state.observation.messages[1].tool_calls == (call,)
    assert env.step(state, Action.from_tool_call("dial", {"number": 3})).rewards["open"].reward == 1.0


def test_a_tool_that_is_called_like_a_control_but_is_none_is_the_bases_to_refuse(locked: Any) -> None:
    env = SegmentedEnvironment(locked(), SentenceSegmenter())
    result = env.step(began(env), Action("Hm.", (ToolCall("segmentation.other", {}, "x"),)))
    assert [r.status for r in result.next_state.observation.tool_results] == ["unknown_tool"]


def test_a_base_that_records_its_chat(locked: Any) -> None:
    env = SegmentedEnvironment(locked(record_chat=True), SentenceSegmenter())
    replay = env.replay(began(env), Action("I dial.", (ToolCall("dial", {"number": 2}, "x"),)))
    state = env.step(replay.final_state, Action("Hm.")).next_state
    assert state.observation.messages == (*replay.final_state.observation.messages, ChatMessage.assistant("Hm."))


# -- replay -----------------------------------------------------------------------------------------------


def test_the_actions_of_a_response(addition: Any, locked: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter(), max_segments=2)
    state = began(env)
    assert env.actions(state, "One. Two. Three.") == (Action("One."), final_segment(" Two. Three."))
    assert env.actions(state, "One. Two. Three.", end=False) == (Action("One. Two. Three."),)
    assert env.actions(state, "") == (final_segment(),)
    call = ToolCall("dial", {"number": 2}, "x")
    safe = SegmentedEnvironment(locked(), SentenceSegmenter())
    assert safe.actions(began(safe), Action("I look. I dial.", (call,))) == (
        Action("I look."),
        Action(" I dial.", (call,)),
    )
    assert safe.replay(began(safe), "One. Two.").trajectory.actions == safe.actions(began(safe), "One. Two.")
    with pytest.raises(InvalidOption, match="text: must be a str"):
        env.actions(state, b"a")  # type: ignore[arg-type]


def test_a_prefix_is_gone_on_with(addition: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter())
    prefix = env.replay(began(env), "First. Dr. Who", end=False)
    assert (prefix.segments, prefix.done) == (("First.", " Dr. Who"), False)
    # the text before tells how the text goes on: no sentence begins at "is"
    assert env.segments(prefix.final_state, " is it. <answer>1</answer>") == (" is it.", " <answer>1</answer>")
    rest = env.replay(prefix.final_state, " is it. <answer>1</answer>")
    assert rest.total_reward == 1.0


def test_replay_of_pairs_and_trajectories(guessing: Any) -> None:
    base = guessing()
    env = SegmentedEnvironment(base, SentenceSegmenter())
    played = Trajectory(began(base, 4)).step(base, Action("I say. It is 3.")).step(base, Action("So. It is 5."))
    replay = env.replay(began(base, 4), played)
    assert replay.segments == ("I say.", " It is 3.", "So.", " It is 5.")
    assert env.base_trajectory(replay.trajectory).states == played.states
    again = env.replay(began(env, 4), replay.trajectory)
    assert again.trajectory == replay.trajectory
    pairs = [(t.state, t.action) for t in replay.trajectory]
    half = env.replay(began(env, 4), pairs[:3])
    assert half.final_state == replay.trajectory.states[3]
    assert env.replay(half.final_state, pairs[3:]).final_state == replay.final_state


def test_a_replay_that_does_not_fit_is_refused(guessing: Any) -> None:
    env = SegmentedEnvironment(guessing(), SentenceSegmenter())
    replay = env.replay(began(env, 4), "It is 3. Yes.")
    pairs = [(t.state, t.action) for t in replay.trajectory]
    with pytest.raises(ReplayDiverged):
        env.replay(began(env, 5), pairs)
    with pytest.raises(ReplayDiverged):
        env.replay(began(env, 4), pairs[1:])
    with pytest.raises(InvalidAction, match="pair"):
        env.replay(began(env, 4), [Action("a")])  # type: ignore[list-item]
    with pytest.raises(InvalidAction, match="needs a text"):
        env.replay(began(env, 4), 3)  # type: ignore[arg-type]
    end = env.replay(began(env, 4), "5").final_state
    with pytest.raises(EpisodeOver):
        env.replay(end, "again")


def test_what_is_refused(addition: Any, locked: Any) -> None:
    base = addition()
    env = SegmentedEnvironment(base, SentenceSegmenter())
    with pytest.raises(InvalidAction, match=r"SegmentedEnvironment.begin\(state\)"):
        env.step(began(base), Action("a"))
    assert env.step(env.begin(began(base)), env.final("<answer>1</answer>")).rewards.total == 1.0
    for arguments, field in [
        ((env, SentenceSegmenter()), "base_env"),
        (("reasoning_gym/leg_counting", SentenceSegmenter()), "base_env"),
    ]:
        with pytest.raises(InvalidOption) as caught:
            SegmentedEnvironment(*arguments)  # type: ignore[arg-type]
        assert caught.value.field == field
    with pytest.raises(InvalidOption, match="max_segments"):
        SegmentedEnvironment(base, SentenceSegmenter(), max_segments=0)
    for wrong in (None, b"a", "a", ["a"], 3):
        for use in (env.begin, env.response, env.base_state, env.ground_truth, env.base_trajectory):
            with pytest.raises(InvalidAction):
                use(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidAction):
            env.replay(wrong, "a")  # type: ignore[arg-type]
        if wrong != "a":
            for made in (final_segment, user_feedback):
                with pytest.raises(InvalidAction):
                    made(wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidOption, match="text: must be a str"):
                env.segments(began(env), wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidAction, match="ToolCalls"):
        final_segment("a", "bc")  # type: ignore[arg-type]
    with pytest.raises(InvalidAction, match="not empty"):
        user_feedback("")
    for arguments in ({}, {"text": ""}, {"text": 3}):
        with pytest.raises(InvalidAction, match="feedback of a user must be a text"):
            env.step(began(env), Action("a", (ToolCall("segmentation.feedback", arguments),)))
    with pytest.raises(InvalidAction, match="segmented already"):
        env.begin(began(env))
    with pytest.raises(InvalidAction, match="none of a SegmentedEnvironment"):
        env.base_trajectory(Trajectory(began(base)))
    for functions, problem in [(3, "must be a list"), (["format", "format"], "'format' occurs twice")]:
        with pytest.raises(InvalidOption, match=f"^reward_functions: .*{problem}"):
            SegmentedEnvironment(base, SentenceSegmenter(), reward_functions=functions)  # type: ignore[arg-type]
    env.close()
    assert base.closed == 1


# -- states are values ------------------------------------------------------------------------------------

PIECES = ["First, ", "count. ", "It is 2", ".", " \n", "<answer>1</answer>", "<answer>", "é😀", "3"]


@given(texts=st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_division_of_a_response_ends_like_the_whole(
    addition: Any, texts: list[str], data: st.DataObject
) -> None:
    base = addition()
    env = SegmentedEnvironment(base, CustomSegmenter(r"(?<=[. ])"), max_segments=20)
    whole = "".join(texts)
    state = began(env)
    for text in texts:
        state = env.step(State.from_json(state.to_json()), Action(text)).next_state
    ended = env.step(state, final_segment())
    assert ended.rewards == base.step(began(base), Action(whole)).rewards
    assert env.replay(began(env), whole)[-1].rewards == ended.rewards
    # and a branch from an earlier state does not know of it
    cut = data.draw(st.integers(0, len(texts)))
    branch = env.replay(began(env), "".join(texts[:cut]), end=False).final_state
    other = env.step(branch, final_segment("<answer>1</answer>"))
    assert other.rewards == base.step(began(base), Action("".join(texts[:cut]) + "<answer>1</answer>")).rewards


def random_segment(state: State[Any], rng: random.Random) -> Action:
    """A segment, an end, feedback, or a tool call."""
    text = rng.choice([" Let me see.", " 3", " <answer>1</answer>", "\n", "It is 5.", "é😀"])
    tools = state.observation.available_tools
    kind = rng.random()
    if kind < 0.2:
        return user_feedback("Are you sure?")
    if kind < 0.4:
        return final_segment(rng.choice(["", text]))
    if tools and kind < 0.7:
        return Action(text, (ToolCall("dial", {"number": rng.randint(1, 5)}, "x"),))
    return Action(text)


def judge(state: State[Any], action: Action, next_state: State[Any]) -> Signal:
    return Signal("judge", RewardType.PROCESS, len(action.text) / 10, feedback=action.text.strip() or None)


def check(make: Callable[[], Environment[Any]]) -> None:
    report = check_environment(make, actions=random_segment, max_steps=12, raise_on_violation=False)
    assert not report.violations, report


def test_conformance_over_a_single_turn(addition: Any) -> None:
    check(lambda: SegmentedEnvironment(addition(), SentenceSegmenter(), reward_functions=[judge], max_segments=6))


def test_conformance_over_several_turns(guessing: Any) -> None:
    check(lambda: SegmentedEnvironment(guessing(), LineSegmenter(), reward_functions=[judge]))


@pytest.mark.parametrize("record_chat", [False, True])
def test_conformance_over_tools(locked: Any, record_chat: bool) -> None:
    check(lambda: SegmentedEnvironment(locked(record_chat), SentenceSegmenter(), reward_functions=[judge]))


def test_earlier_states_of_a_long_walk(guessing: Any, locked: Any) -> None:
    for base in (guessing(), locked(), locked(record_chat=True)):
        check_walk(SegmentedEnvironment(base, SentenceSegmenter(), reward_functions=[judge]), random_segment)


def test_conformance_over_reasoning_gym() -> None:
    pytest.importorskip("llenvs_reasoning_gym")
    check(lambda: SegmentedEnvironment(make("reasoning_gym/leg_counting", size=9), SentenceSegmenter()))
