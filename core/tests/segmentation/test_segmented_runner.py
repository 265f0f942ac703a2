"""Generation segment by segment: what is asked, what is kept, what a callback can do, what it costs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llenvs.core import (
    Action,
    FinishReason,
    Generation,
    LineSegmenter,
    SegmentedEnvironment,
    SentenceSegmenter,
    ToolCall,
    Trajectory,
    Usage,
)
from llenvs.core.errors import InvalidAction, InvalidOption, ReplayDiverged, TaskIndexOutOfRange
from llenvs.evaluation import (
    Branch,
    Feedback,
    Finish,
    ForceNext,
    GoOn,
    SegmentedRollout,
    SegmentedTrajectoryRunner,
    SegmentProposer,
    SegmentStep,
    Stop,
    TrajectoryRunner,
    run_evaluation,
)
from llenvs.evaluation.segmented_episode import CONTINUE, continued
from llenvs.evaluation.segmented_tokens import ends_of_pieces
from llenvs.inference import GenerationRequest, SamplingParams, ScriptedBackend

TEXT = "First, count. There are two. <answer>1</answer> Done."
SEGMENTS = ["First, count.", " There are two.", " <answer>1</answer> Done."]
Run = Callable[..., SegmentedRollout]


def segments(rollout: SegmentedRollout) -> list[str]:
    assert rollout.trajectory is not None, rollout.error
    return [action.text for action in rollout.trajectory.actions]


def kept(rollout: SegmentedRollout) -> int:
    assert rollout.trajectory is not None
    return sum(t.generation.usage.completion_tokens for t in rollout.trajectory if t.generation is not None)


def paid(rollout: SegmentedRollout) -> Usage:
    return sum((g.usage for g in rollout.generations), Usage())


def at(*decisions: Any) -> Callable[[SegmentStep], Any]:
    """A callback of the rollout itself that decides in turn; branches go on."""
    left = list(decisions)
    return lambda step: None if step.branch or not left else left.pop(0)


@pytest.fixture
def env(addition: Any) -> SegmentedEnvironment:
    return SegmentedEnvironment(addition(), SentenceSegmenter())


# -- nobody intervenes ------------------------------------------------------------------------------------


def test_without_a_callback_it_is_the_rollout_of_any_runner(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT)
    plain = TrajectoryRunner(env.base_env, backend, seed=5).run_trajectory(0)
    asked = list(backend.requests)
    rollout = SegmentedTrajectoryRunner(env, backend, seed=5).run_trajectory(0)
    assert segments(rollout) == SEGMENTS
    assert rollout.success is True
    assert rollout.reward == 1.0
    assert rollout.usage == plain.usage == paid(rollout)
    assert (rollout.discarded_tokens, rollout.cut_off, rollout.branches) == (0, False, ())
    assert len(backend.requests) == 2
    assert backend.requests[1].messages == asked[0].messages
    assert backend.requests[1].sampling.seed == asked[0].sampling.seed
    assert plain.trajectory is not None
    assert rollout.trajectory is not None
    base = env.base_trajectory(rollout.trajectory)
    assert base.states == plain.trajectory.states
    assert base.actions == plain.trajectory.actions
    joined, whole = base.transitions[0].generation, rollout.generations[0]
    assert joined is not None
    for name in ("text", "finish_reason", "usage", "prompt_token_ids", "completion_token_ids", "logprobs"):
        assert getattr(joined, name) == getattr(whole, name), name


def test_every_token_is_in_the_segment_that_it_spells(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT)
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(0)
    assert rollout.trajectory is not None
    generations = [t.generation for t in rollout.trajectory]
    for segment, generation in zip(SEGMENTS, generations, strict=True):
        assert generation is not None
        assert generation.text == backend.text_of(generation.completion_token_ids or ()) == segment
        assert len(generation.logprobs or ()) == len(generation.completion_token_ids or ())
    assert [len(g.completion_token_ids or ()) for g in generations if g] == [
        2,
        3,
        3,
    ]  # the last with the end of turn
    assert [g.usage.completion_tokens for g in generations if g] == [2, 3, 3]
    assert [g.usage.prompt_tokens for g in generations if g] == [rollout.usage.prompt_tokens, 0, 0]
    assert [g.prompt_token_ids is not None for g in generations if g] == [True, False, False]
    assert [g.finish_reason for g in generations if g] == [FinishReason.STOP] * 3


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
@pytest.mark.parametrize("exact", [True, False])
def test_chunks_give_the_same_segments(env: SegmentedEnvironment, reciter: Any, chunk: int, exact: bool) -> None:
    backend = reciter(TEXT, token_ids=exact)
    runner = SegmentedTrajectoryRunner(env, backend, chunk_tokens=chunk, step_callback=lambda step: None)
    rollout = runner.run_trajectory(0)
    assert segments(rollout) == SEGMENTS
    tokens = len(backend.spell(TEXT))
    assert len(backend.requests) == 1 + tokens // chunk
    assert rollout.usage == paid(rollout)
    assert kept(rollout) == rollout.usage.completion_tokens == tokens + 1
    assert rollout.discarded_tokens == 0
    assert rollout.trajectory is not None
    generation = env.base_trajectory(rollout.trajectory).transitions[0].generation
    assert generation is not None
    assert generation.text == TEXT
    if exact:
        assert backend.text_of(generation.completion_token_ids or ()) == TEXT
        assert (generation.completion_token_ids or ())[-1] == backend.END
    else:
        assert generation.completion_token_ids is None


def test_chunks_that_are_read_with_other_ids_are_no_one_sequence(env: SegmentedEnvironment, reciter: Any) -> None:
    runner = SegmentedTrajectoryRunner(
        env, reciter(TEXT, merges=True), chunk_tokens=3, step_callback=lambda s: None
    )
    rollout = runner.run_trajectory(0)
    assert rollout.trajectory is not None
    assert [t.generation.metadata.get("apart", False) for t in rollout.trajectory if t.generation] == [
        False,
        True,
        True,
    ]
    generation = env.base_trajectory(rollout.trajectory).transitions[0].generation
    assert generation is not None
    assert generation.completion_token_ids is None
    assert generation.usage == rollout.usage


def test_several_turns(guessing: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(guessing(), SentenceSegmenter())
    guesses = iter(["I start. It is 3.", "Higher then. It is 5."])
    backend = reciter(lambda request: next(guesses))
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(4)
    assert segments(rollout) == ["I start.", " It is 3.", "Higher then.", " It is 5."]
    assert rollout.success is True
    second = backend.requests[1].messages
    assert [(m.role, m.content) for m in second] == [
        ("user", "Guess a number from 1 to 9.\n\nYour guess?"),
        ("assistant", "I start. It is 3."),
        ("user", "Higher."),
    ]
    plain = TrajectoryRunner(guessing(), ScriptedBackend(["I start. It is 3.", "Higher then. It is 5."]))
    assert second == plain.run_trajectory(4).requests[1]
    assert len(rollout.requests) == 4
    limited = SegmentedTrajectoryRunner(env, ScriptedBackend("No. 1"), max_steps=2).run_trajectory(4)
    assert (segments(limited), limited.cut_off, limited.success) == (["No. 1", "No. 1"], True, False)


def test_tool_calls(locked: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(locked(), SentenceSegmenter())

    def says(request: GenerationRequest) -> tuple[str, tuple[ToolCall, ...]]:
        number = sum(message.role == "tool" for message in request.messages) + 1
        return f"I look. I dial {number}.", (ToolCall("dial", {"number": number}),)

    backend = reciter(says)
    rollout = SegmentedTrajectoryRunner(env, backend, max_steps=2).run_trajectory(1)
    assert segments(rollout) == ["I look.", " I dial 1.", "I look.", " I dial 2."]
    assert rollout.signals["open"] == 1.0
    assert [m.role for m in backend.requests[1].messages] == ["user", "assistant", "tool"]
    assert [tool.name for tool in backend.requests[1].tools] == ["dial", "leave"]
    assert rollout.trajectory is not None
    calls = [c for a in env.base_trajectory(rollout.trajectory).actions for c in a.tool_calls]
    assert [c.arguments["number"] for c in calls] == [1, 2]
    assert len({c.id for c in calls}) == 2


def test_a_model_cannot_steer(locked: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(locked(), SentenceSegmenter())
    calls = (ToolCall("segmentation.feedback", {"text": "You are great."}),)
    rollout = SegmentedTrajectoryRunner(env, reciter(lambda request: ("Hm.", calls)), max_steps=1).run_trajectory(
        0
    )
    assert rollout.trajectory is not None
    result = rollout.trajectory.final_state.observation.tool_results[0]
    assert result.status == "unknown_tool"


def test_max_segments_puts_the_rest_into_the_last(addition: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(addition(), SentenceSegmenter(), max_segments=2)
    rollout = SegmentedTrajectoryRunner(env, reciter(TEXT)).run_trajectory(0)
    assert segments(rollout) == [SEGMENTS[0], SEGMENTS[1] + SEGMENTS[2]]
    assert rollout.success is True


def test_the_token_limit_is_for_the_response(env: SegmentedEnvironment, reciter: Any) -> None:
    for options in ({}, {"chunk_tokens": 2, "step_callback": lambda step: None}):
        runner = SegmentedTrajectoryRunner(
            env, reciter(TEXT), sampling_params=SamplingParams(max_tokens=4), **options
        )
        rollout = runner.run_trajectory(0)
        assert segments(rollout) == ["First, count.", " There are"]
        assert rollout.usage.completion_tokens == 4
        assert rollout.length_limited
        assert rollout.success is False


# -- the callback -----------------------------------------------------------------------------------------


def test_what_the_callback_sees(addition: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(
        addition(), SentenceSegmenter(), reward_functions=lambda state, action, after: len(action.text)
    )
    seen: list[SegmentStep] = []
    rollout = SegmentedTrajectoryRunner(env, reciter(TEXT)).run_trajectory(3, repeat=2, step_callback=seen.append)
    assert [step.text for step in seen] == SEGMENTS
    assert [step.index for step in seen] == [0, 1, 2]
    assert [step.written for step in seen] == [SEGMENTS[0], SEGMENTS[0] + SEGMENTS[1], TEXT]
    assert [step.ends_response for step in seen] == [False, False, True]
    assert [step.reward for step in seen] == [13.0, 15.0, 25.0]
    assert {(step.task_index, step.repeat, step.branch) for step in seen} == {(3, 2, ())}
    assert seen[-1].state.is_terminal
    assert seen[1].trajectory.branch(1) == seen[0].trajectory
    assert rollout.trajectory == seen[-1].trajectory


def test_go_on_is_what_none_is(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT)
    rollout = SegmentedTrajectoryRunner(env, backend, step_callback=lambda step: GoOn()).run_trajectory(0)
    assert (segments(rollout), len(backend.requests)) == (SEGMENTS, 1)


def test_force(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(lambda request: "First, count. I say two. It is <answer>1</answer>" if not request.prefix
                      else request.prefix + " <answer>1</answer> Yes.")  # fmt: skip
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(ForceNext(" No: one.")))
    assert segments(rollout) == ["First, count.", " No: one.", " <answer>1</answer> Yes."]
    assert [r.prefix for r in backend.requests] == ["", "First, count. No: one."]
    assert backend.requests[0].messages == backend.requests[1].messages
    assert backend.requests[0].sampling.seed != backend.requests[1].sampling.seed
    assert rollout.trajectory is not None
    assert [t.generation is None for t in rollout.trajectory] == [False, True, False]
    assert rollout.discarded_tokens == 7  # " I say two. It is <answer>1</answer>" and the end of the turn
    assert kept(rollout) + rollout.discarded_tokens == rollout.usage.completion_tokens
    generation = env.base_trajectory(rollout.trajectory).transitions[0].generation
    assert generation is not None
    assert generation.completion_token_ids is None  # not all of it is the model's
    ended = SegmentedTrajectoryRunner(env, backend).run_trajectory(
        1, step_callback=at(ForceNext(" <answer>2</answer>", end=True))
    )
    assert segments(ended) == ["First, count.", " <answer>2</answer>"]
    assert ended.success is True


def test_feedback(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(
        lambda request: "It is 7. Surely." if len(request.messages) == 1 else "<answer>1</answer> Yes."
    )
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(Feedback("Count again.")))
    assert segments(rollout) == ["It is 7.", "", "<answer>1</answer> Yes."]
    assert rollout.success is True
    assert [(m.role, m.content) for m in backend.requests[1].messages] == [
        ("user", "What is 0 + 1?"),
        ("assistant", "It is 7."),
        ("user", "Count again."),
    ]
    assert backend.requests[1].prefix == ""
    assert rollout.trajectory is not None
    assert env.base_trajectory(rollout.trajectory).actions == (Action("It is 7.\n\n<answer>1</answer> Yes."),)
    # the callback is asked on, in the new message too
    asked: list[str] = []

    def teacher(step: SegmentStep) -> Feedback | None:
        asked.append(step.written)
        return Feedback("Again.") if len(asked) < 3 else None

    rollout = SegmentedTrajectoryRunner(env, reciter("No. Yes.")).run_trajectory(0, step_callback=teacher)
    assert asked == ["No.", "No.", "No.", "No. Yes."]


def test_finish(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT)
    asked: list[str] = []

    def callback(step: SegmentStep) -> Finish:
        asked.append(step.text)
        return Finish()

    rollout = SegmentedTrajectoryRunner(env, backend, chunk_tokens=3).run_trajectory(0, step_callback=callback)
    assert segments(rollout) == SEGMENTS
    assert asked == SEGMENTS[:1]
    assert [r.sampling.max_tokens for r in backend.requests] == [3, None]
    assert kept(rollout) == rollout.usage.completion_tokens


def test_stop(env: SegmentedEnvironment, reciter: Any) -> None:
    runner = SegmentedTrajectoryRunner(env, reciter("<answer>1</answer> So. And on. And on."))
    stopped = runner.run_trajectory(0, step_callback=at(Stop()))
    assert segments(stopped) == ["<answer>1</answer> So."]
    assert (stopped.cut_off, stopped.success, stopped.reward, stopped.error) == (True, False, 0.0, None)
    submitted = runner.run_trajectory(0, step_callback=at(Stop(submit=True)))
    assert segments(submitted) == ["<answer>1</answer> So.", ""]
    assert (submitted.cut_off, submitted.success, submitted.reward) == (False, True, 1.0)
    assert stopped.discarded_tokens == submitted.discarded_tokens == 5


def test_branches(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(
        lambda request: TEXT if not request.prefix else request.prefix + f" It is {request.sampling.seed}. End."
    )
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(Branch(3)))
    assert segments(rollout) == SEGMENTS
    assert [b.branch for b in rollout.branches] == [(1,), (2,)]
    seeds = [request.sampling.seed for request in backend.requests]
    assert len(set(seeds)) == 3
    for branch in rollout.branches:
        assert isinstance(branch, SegmentedRollout)
        assert branch.trajectory is not None
        assert rollout.trajectory is not None
        assert branch.trajectory.branch(1) == rollout.trajectory.branch(1)
        assert branch.trajectory.done
        assert branch.usage == paid(branch)  # what they began with is not theirs
    assert rollout.usage == paid(rollout) + sum((b.usage for b in rollout.branches), Usage())
    assert rollout.success is True
    assert [b.success for b in rollout.branches] == [False, False]
    # one sequence of ids, also across the branching
    for branch in rollout.branches:
        assert branch.trajectory is not None
        generation = env.base_trajectory(branch.trajectory).transitions[0].generation
        assert generation is not None
        assert backend.text_of(generation.completion_token_ids or ()) == generation.text


def test_branches_of_branches_are_bounded(env: SegmentedEnvironment, reciter: Any) -> None:
    runner = SegmentedTrajectoryRunner(
        env, reciter(TEXT), max_branches=8, step_callback=lambda step: Branch(2) if len(step.branch) < 2 else None
    )
    rollout = runner.run_trajectory(0)
    # at each of two boundaries a branch; the first of them branches once more on its way, at the second boundary
    paths = sorted(b.branch for b in rollout.branches) + [c.branch for b in rollout.branches for c in b.branches]
    assert paths == [(1,), (2,), (1, 1)]
    assert all(b.error is None for b in rollout.branches)
    endless = SegmentedTrajectoryRunner(env, reciter(TEXT), max_branches=2, step_callback=lambda step: Branch(3))
    found = endless.run_trajectory(0)
    errors = [r.error for r in (found, *found.branches)]
    assert any(error is not None and "max_branches" in error.message for error in errors)


def test_async_callbacks_and_threads(env: SegmentedEnvironment, reciter: Any) -> None:
    where: list[str] = []

    async def on_the_loop(step: SegmentStep) -> Stop:
        await asyncio.sleep(0)
        where.append(threading.current_thread().name)
        return Stop()

    def in_a_thread(step: SegmentStep) -> Stop:
        where.append(threading.current_thread().name)
        return Stop()

    class Judge:
        async def __call__(self, step: SegmentStep) -> Stop:
            return await on_the_loop(step)

    runner = SegmentedTrajectoryRunner(env, reciter(TEXT))
    for callback in (on_the_loop, in_a_thread, Judge(), lambda step: on_the_loop(step)):
        assert segments(runner.run_trajectory(0, step_callback=callback)) == SEGMENTS[:1]
    assert [name.startswith("llenvs-callback") for name in where] == [False, True, False, False]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_callback_may_run_trajectories_of_the_same_runner(
    env: SegmentedEnvironment, reciter: Any, is_async: bool
) -> None:
    runner = SegmentedTrajectoryRunner(env, reciter(TEXT), batch_size=1, trajectory_timeout=10)
    chances: list[float] = []

    def estimate(step: SegmentStep) -> None:
        if not step.ends_response:
            chances.append(runner.run_trajectory(0, repeat=1, start=step.trajectory).reward)

    async def estimate_on_the_loop(step: SegmentStep) -> None:
        if not step.ends_response:
            chances.append((await runner.arun_trajectory(0, repeat=1, start=step.trajectory)).reward)

    rollout = runner.run_trajectory(0, step_callback=estimate_on_the_loop if is_async else estimate)
    assert rollout.error is None
    assert chances == [1.0, 1.0]


@pytest.mark.parametrize("kind", [SystemExit, StopIteration, asyncio.CancelledError, KeyboardInterrupt])
def test_what_a_callback_raises_ends_its_rollout_and_nothing_else(
    env: SegmentedEnvironment, reciter: Any, kind: type[BaseException]
) -> None:
    def broken(step: SegmentStep) -> None:
        raise kind("no")

    error = SegmentedTrajectoryRunner(env, reciter(TEXT)).run_trajectory(0, step_callback=broken).error
    assert str(error) == f"CallbackFailed: step_callback raised {kind.__name__}: no"


def test_errors_of_the_callback_are_the_rollouts(env: SegmentedEnvironment, reciter: Any) -> None:
    def broken(step: SegmentStep) -> None:
        raise RuntimeError("the reward model is down")

    runner = SegmentedTrajectoryRunner(env, reciter(TEXT))
    rollout = runner.run_trajectory(0, step_callback=broken)
    assert rollout.error is not None
    assert "the reward model is down" in rollout.error.message
    assert segments(rollout) == SEGMENTS[:1]
    assert rollout.success is None
    assert rollout.usage.completion_tokens == 8
    for wrong in (lambda step: True, lambda step: Stop):
        error = runner.run_trajectory(0, step_callback=wrong).error  # type: ignore[arg-type]
        assert error is not None
        assert error.message.startswith("step_callback: returned")


def test_a_token_across_a_boundary_that_is_thrown_away(addition: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(addition(), LineSegmenter())
    backend = reciter(
        "One two\nthree\n four"
    )  # its tokens "\nthree" and "\n four" begin in one line, end in the next
    whole = SegmentedTrajectoryRunner(env, backend).run_trajectory(0)
    assert segments(whole) == ["One two\n", "three\n", " four"]
    submitted = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(Stop(submit=True)))
    assert segments(submitted) == ["One two\n", ""]
    branched = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(Branch(2)))
    ids: list[tuple[int, ...] | None] = []
    for rollout in (whole, submitted, branched, *branched.branches):
        assert rollout.trajectory is not None
        generation = env.base_trajectory(rollout.trajectory).transitions[0].generation
        assert generation is not None
        ids.append(generation.completion_token_ids)
    # the ids of "One two" are no ids of "One two\n"
    assert [None if each is None else backend.text_of(each) for each in ids] == [
        "One two\nthree\n four",
        None,
        "One two\nthree\n four",
        None,
    ]


# -- prefixes ---------------------------------------------------------------------------------------------


def test_a_prefix_of_text(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT)
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, prefix="First, count. There")
    assert segments(rollout) == SEGMENTS
    assert [r.prefix for r in backend.requests] == ["First, count. There"]
    assert rollout.trajectory is not None
    given, mixed, last = (t.generation for t in rollout.trajectory)
    assert given is None
    assert mixed is not None
    assert mixed.text == " are two."
    assert last is not None
    assert rollout.success is True


def test_prefixes_of_steps(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT)
    runner = SegmentedTrajectoryRunner(env, backend)
    whole = runner.run_trajectory(0).trajectory
    assert whole is not None
    pairs = [(t.state, t.action) for t in whole][:2]
    for options in ({"prefix": pairs}, {"prefix": whole.branch(2)}, {"start": whole.branch(2)}):
        rollout = runner.run_trajectory(0, **options)  # type: ignore[arg-type]
        assert segments(rollout) == SEGMENTS
        assert backend.requests[-1].prefix == SEGMENTS[0] + SEGMENTS[1]
        assert rollout.usage.completion_tokens == 3
    with pytest.raises(ReplayDiverged):
        runner.run_trajectory(0, prefix=[pairs[0], pairs[0]])
    with pytest.raises(InvalidOption, match="together with start"):
        runner.run_trajectory(0, prefix="a", start=whole)
    with pytest.raises(TaskIndexOutOfRange):
        runner.run_trajectory(99)


def test_a_prefix_of_the_base_environments_steps(guessing: Any, reciter: Any) -> None:
    base = guessing()
    state = base.reset(options={"task_index": 4})[0]
    played = Trajectory(state).step(base, Action("I say. It is 3."))
    backend = reciter("It is 5.")
    runner = SegmentedTrajectoryRunner(base, backend, segmenter=SentenceSegmenter())
    rollout = runner.run_trajectory(4, prefix=played)
    assert segments(rollout) == ["I say.", " It is 3.", "It is 5."]
    assert [m.content for m in backend.requests[0].messages[1:]] == ["I say. It is 3.", "Higher."]
    assert rollout.success is True
    # from a state in the middle, where the chat before is only in the state
    middle = runner.environment.begin(played.final_state)
    rollout = runner.run_trajectory(4, start=Trajectory(middle))
    assert [m.content for m in backend.requests[1].messages] == ["Higher."]


# -- backends without an assistant prefix -----------------------------------------------------------------


def test_the_fallback_in_words(env: SegmentedEnvironment, reciter: Any) -> None:
    answers = iter(["First, count. It is seven. End.", "First, count. No. It is <answer>1</answer>"])
    backend = reciter(lambda request: next(answers), prefix=False)
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(ForceNext(" No.")))
    assert segments(rollout) == ["First, count.", " No.", " It is <answer>1</answer>"]
    assert [(m.role, m.content) for m in backend.requests[1].messages[1:]] == [
        ("assistant", "First, count. No."),
        ("user", CONTINUE),
    ]
    assert rollout.continued_by_message
    assert rollout.success is True
    # what it repeated was paid for, and is no part of the response
    assert rollout.discarded_tokens == 5 + 3
    assert kept(rollout) + rollout.discarded_tokens == rollout.usage.completion_tokens
    plain = SegmentedTrajectoryRunner(env, reciter(TEXT, prefix=False)).run_trajectory(0)
    assert not plain.continued_by_message
    # an API that has prefixes, a model that refuses them
    backend = reciter(TEXT)
    backend.model = "claude-opus-4-7"
    refused = SegmentedTrajectoryRunner(env, backend).run_trajectory(0, step_callback=at(ForceNext(" No.")))
    assert refused.continued_by_message
    assert [r.prefix for r in backend.requests] == ["", ""]


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        ("It is one.", " It is one."),
        ("\nIt is one.", "\nIt is one."),
        (", that is.", ", that is."),
        ("A line\nFirst, count. It is one.", " It is one."),
        ("First, count. It is one.", " It is one."),
    ],
)
def test_how_the_fallback_goes_on(addition: Any, reciter: Any, answer: str, rest: str) -> None:
    env = SegmentedEnvironment(addition(), LineSegmenter())
    answers = iter(["A line\nEnd", answer])
    backend = reciter(lambda request: next(answers), prefix=False)
    rollout = SegmentedTrajectoryRunner(env, backend).run_trajectory(
        0, step_callback=at(ForceNext("First, count."))
    )
    assert "".join(segments(rollout)) == "A line\nFirst, count." + rest


@pytest.mark.parametrize(
    ("written", "answer", "whole"),
    [
        ("It is", "one.", "It is one."),
        ("It is ", "one.", "It is one."),
        ("I", "It is one.", "It is one."),  # within a word
        ("The ans", "The answer is 1.", "The answer is 1."),
        ("So.\nThe ans", "The answer is 1.", "So.\nThe answer is 1."),
        ("I ", "It is one.", "I It is one."),
        ("So.\nI ", "I think.", "So.\nI think."),
        ("So.\nI see.\n", "I see.\nYes.", "So.\nI see.\nYes."),
        ("So.\nI see.\n", "I see. Yes.", "So.\nI see.\n Yes."),
        ("x = 1", "", "x = 1"),
    ],
)
def test_what_an_answer_repeats(written: str, answer: str, whole: str) -> None:
    found = continued(written, Generation(answer))
    assert written + found.glue + answer[found.skipped :] == whole


def test_without_a_prefix_nothing_is_written_in_chunks(env: SegmentedEnvironment, reciter: Any) -> None:
    backend = reciter(TEXT, prefix=False)
    runner = SegmentedTrajectoryRunner(env, backend, chunk_tokens=2, step_callback=lambda step: None)
    rollout = runner.run_trajectory(0)
    assert segments(rollout) == SEGMENTS
    assert (len(backend.requests), rollout.continued_by_message) == (1, False)
    propose = SegmentProposer(env, backend, count=1, chunk_tokens=1)
    ((action, share),) = propose(env.reset(options={"task_index": 0})[0])
    assert (action.text, share) == (SEGMENTS[0], 1.0)
    assert len(backend.requests) == 2


# -- many -------------------------------------------------------------------------------------------------


def test_batches_share_the_scheduler(addition: Any) -> None:
    running = most = 0

    class Counting(ScriptedBackend):
        async def _generate(self, request: GenerationRequest, n: int) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.005)
            running -= 1
            return await super()._generate(request, n)

    env = SegmentedEnvironment(addition(6), SentenceSegmenter())
    backend = Counting(lambda request: request.prefix + " One. Two." if request.prefix else "One. Two. Three.")

    def branch_once(step: SegmentStep) -> Any:  # decides by the step alone: rollouts run side by side
        first = step.repeat == 0 and len(step.trajectory) == 1
        return Branch(4) if first and not step.branch else None

    runner = SegmentedTrajectoryRunner(env, backend, batch_size=3, step_callback=branch_once)
    rollouts = runner.run_batch(range(6), repeats=2)
    assert [(r.task_index, r.repeat) for r in rollouts] == [(i, k) for i in range(6) for k in range(2)]
    assert [len(r.branches) for r in rollouts] == [3, 0] * 6
    assert all(r.error is None for r in rollouts)
    assert most == 3  # branches make more rollouts, not more requests at once


def test_streams_take_a_callback_too(addition: Any, reciter: Any) -> None:
    env = SegmentedEnvironment(addition(6), SentenceSegmenter())
    runner = SegmentedTrajectoryRunner(env, reciter(TEXT))

    async def read() -> list[SegmentedRollout]:
        return [rollout async for rollout in runner.stream(range(6), repeats=2, step_callback=lambda s: Stop())]

    rollouts = asyncio.run(read())
    assert sorted((r.task_index, r.repeat) for r in rollouts) == [(i, k) for i in range(6) for k in range(2)]
    assert all(segments(rollout) == SEGMENTS[:1] for rollout in rollouts)


def test_run_folders_record_segments(addition: Any, reciter: Any, tmp_path: Path) -> None:
    env = SegmentedEnvironment(
        addition(3), SentenceSegmenter(), reward_functions=lambda state, action, after: float("two" in action.text)
    )
    backend = reciter(TEXT)
    options: dict[str, Any] = {"output_dir": tmp_path / "run", "log": (), "save_states": True}
    result = run_evaluation(env, backend, step_callback=at(Branch(2)), num_tasks=1, **options)
    assert (result.num_done, result.num_errors, result.success_rate) == (1, 0, 1.0)
    (record,) = [json.loads(line) for line in (tmp_path / "run" / "trajectories.jsonl").read_text().splitlines()]
    assert record["environment"] == "toys/addition[sentence]"
    assert [turn["response"] for turn in record["turns"]] == SEGMENTS
    assert [turn["prompt"] for turn in record["turns"]] == [
        [{"role": "user", "content": "What is 0 + 1?"}],
        [],
        [],
    ]
    assert [turn["reward"] for turn in record["turns"]] == [0.0, 1.0, 1.0]
    assert len(record["branches"]) == 1
    assert record["usage"]["completion_tokens"] == 8 + 6
    trajectory = Trajectory.from_json(json.dumps(record["trajectory"]))
    assert env.replay(trajectory.initial_state, trajectory).total_reward == record["reward"] == 2.0
    asked = len(backend.requests)
    again = run_evaluation(env, backend, step_callback=at(Branch(2)), num_tasks=1, **options)
    assert again.usage == result.usage
    assert len(backend.requests) == asked
    with pytest.raises(InvalidOption, match="needs a SegmentedEnvironment"):
        run_evaluation(env.base_env, backend, step_callback=at(), log=())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"chunk_tokens": 0}, "chunk_tokens"),
        ({"max_branches": True}, "max_branches"),
        ({"step_callback": 3}, "step_callback"),
        ({"segmenter": LineSegmenter()}, "segmenter"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_what_is_refused(env: SegmentedEnvironment, reciter: Any, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        SegmentedTrajectoryRunner(env, reciter(TEXT), **options)
    assert caught.value.field == field
    with pytest.raises(InvalidOption, match="use SegmentedTrajectoryRunner"):
        TrajectoryRunner(env, reciter(TEXT))
    for make in (
        lambda: Branch(0),
        lambda: ForceNext(""),
        lambda: ForceNext("a", "no"),  # type: ignore[arg-type]
        lambda: Feedback(""),
        lambda: Feedback(b"a"),  # type: ignore[arg-type]
        lambda: Stop("no"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidOption):
            make()


@pytest.mark.parametrize("wrong", [b"a", 3, ["a"], "a"])
def test_what_is_no_beginning(env: SegmentedEnvironment, reciter: Any, wrong: Any) -> None:
    runner = SegmentedTrajectoryRunner(env, reciter(TEXT))
    with pytest.raises(InvalidOption, match="start: must be a trajectory of the segmented environment"):
        runner.run_trajectory(0, start=wrong)
    if wrong != "a":
        with pytest.raises((InvalidOption, InvalidAction), match=r"is no beginning|must be a pair"):
            runner.run_trajectory(0, prefix=wrong)
    base = Trajectory(env.base_env.reset(options={"task_index": 0})[0])
    with pytest.raises(InvalidOption, match="one of the base environment is a prefix"):
        runner.run_trajectory(0, start=base)


def test_who_proposes_segments_needs_an_environment_of_them(env: SegmentedEnvironment, reciter: Any) -> None:
    with pytest.raises(InvalidOption, match="environment: must be a SegmentedEnvironment"):
        SegmentProposer(env.base_env, reciter(TEXT))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="backend: must be a Backend"):
        SegmentProposer(env, 3)  # type: ignore[arg-type]


# -- tokens and text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces", "ends"),
    [
        ("a bc", ["a", " bc"], [1, 4]),
        ("a bc", ["a", " bc", "<end>"], [1, 4, 4]),
        ("a", ["a", " stop", "ped"], [1, 1, 1]),
        ("", ["<end>"], [0]),
        ("aé b", ["a", "\ufffd", "\ufffd", " b"], [1, 1, 2, 4]),
        ("你好x", ["\ufffd", "\ufffd", "\ufffd", "\ufffd", "x"], [0, 1, 1, 2, 3]),
        ("a😀", ["a", "\ufffd", "\ufffd"], [1, 1, 2]),
        ("a\ufffdb", ["a\ufffd", "b"], [2, 3]),
    ],
)
def test_where_tokens_end(text: str, pieces: list[str], ends: list[int]) -> None:
    assert ends_of_pieces(text, pieces) == ends
