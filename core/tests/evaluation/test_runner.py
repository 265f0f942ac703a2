from __future__ import annotations

import asyncio
import itertools
import threading
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from llenvs.core import Action, Generation, RewardType, Signal, State, StepResult, ToolCall, Usage
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange
from llenvs.evaluation import TrajectoryRunner
from llenvs.evaluation.rollout import RolloutError
from llenvs.inference import Capabilities, SamplingParams
from llenvs.inference.errors import AuthenticationFailed, ContextOverflow


def test_one_turn(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder()
    rollout = TrajectoryRunner(addition(), scripted(script), system_prompt="Add them.").run_trajectory(3)
    assert (rollout.task_index, rollout.repeat, rollout.success, rollout.reward) == (3, 0, True, 1.0)
    assert rollout.signals == {"score": 1.0, "length": 1.0}
    assert rollout.trajectory is not None
    assert rollout.trajectory.actions == (Action("4"),)
    assert rollout.error is None
    assert [(m.role, m.content) for m in script.requests[0].messages] == [
        ("system", "Add them."),
        ("user", "What is 3 + 1?"),
    ]
    assert rollout.requests == (script.requests[0].messages,)


def test_an_address_stands_for_an_environment() -> None:
    from llenvs.core.errors import UnknownAdapter
    from llenvs.inference import ScriptedBackend

    with pytest.raises(UnknownAdapter):
        TrajectoryRunner("no_such_adapter/x", ScriptedBackend())


def test_several_turns_build_one_conversation(countdown: Any, scripted: Any) -> None:
    seen = []

    def script(request: Any) -> str:
        seen.append([(m.role, m.content) for m in request.messages])
        return "wait" if len(request.messages) == 3 else "down"

    rollout = TrajectoryRunner(countdown(), scripted(script)).run_trajectory(1)
    assert rollout.trajectory is not None
    assert [action.text for action in rollout.trajectory.actions] == ["down", "wait", "down"]
    assert (rollout.success, rollout.reward, rollout.num_turns) == (True, 2.0, 3)
    assert rollout.signals == {"lowered": 2.0, "done": 1.0}
    assert seen[-1] == [
        ("user", "Count down to 0.\n\nThe number is 2."),
        ("assistant", "down"),
        ("user", "The number is 1."),
        ("assistant", "wait"),
        ("user", "The number is 1."),
    ]


def test_tool_calls_and_their_results(countdown: Any, scripted: Any) -> None:
    requests = []

    def script(request: Any) -> Generation:
        requests.append(request)
        return Generation("", (ToolCall("lower"), ToolCall("lower")))

    rollout = TrajectoryRunner(countdown(with_tools=True), scripted(script)).run_trajectory(1)
    assert rollout.success is True
    assert [tool.name for tool in requests[0].tools] == ["lower"]
    later = requests[1].messages
    assert [call.id for call in later[1].tool_calls] == ["call_0_0", "call_0_1"]
    assert [(m.role, m.tool_call_id, m.content) for m in later[2:]] == [
        ("tool", "call_0_0", "1"),
        ("tool", "call_0_1", "1"),
    ]


def test_the_runner_may_end_an_episode(countdown: Any, scripted: Any) -> None:
    rollout = TrajectoryRunner(countdown(), scripted("down"), max_steps=2).run_trajectory(4)
    assert (rollout.num_turns, rollout.cut_off, rollout.success, rollout.reward) == (2, True, False, 2.0)


def test_exact_tokens_are_kept(addition: Any, scripted: Any) -> None:
    generation = Generation("1", usage=Usage(5, 2), prompt_token_ids=(1, 2, 3), completion_token_ids=(7, 2))
    rollout = TrajectoryRunner(addition(), scripted(lambda request: generation)).run_trajectory(0)
    assert rollout.trajectory is not None
    kept = rollout.trajectory.transitions[0].generation
    assert kept is not None
    assert (kept.prompt_token_ids, kept.completion_token_ids) == ((1, 2, 3), (7, 2))
    assert rollout.usage == Usage(5, 2)


def test_seeds_follow_from_seed_task_attempt_and_turn(countdown: Any, scripted: Any) -> None:
    def seeds(seed: int, **options: Any) -> list[int]:
        found = []

        def script(request: Any) -> str:
            found.append(request.sampling.seed)
            return "down"

        backend = scripted(script, max_concurrency=1)
        runner = TrajectoryRunner(countdown(3), backend, seed=seed, **options)
        runner.run_batch(range(3), repeats=2)
        return found

    assert seeds(0) == seeds(0)
    assert len(set(seeds(0))) == 2 * (1 + 2 + 3)
    assert not set(seeds(0)) & set(seeds(1))
    assert seeds(0, sampling_params=SamplingParams(seed=1)) == seeds(1, sampling_params=SamplingParams(seed=1))


def test_a_backend_without_seeds_gets_none(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder()
    backend = scripted(script)
    backend.capabilities = replace(Capabilities(), seed=False)
    TrajectoryRunner(addition(), backend).run_trajectory(0)
    assert script.requests[0].sampling.seed is None


def test_a_batch_comes_in_its_order(addition: Any, recorder: Any, scripted: Any) -> None:
    rollouts = TrajectoryRunner(addition(), scripted(recorder(wrong=[2]))).run_batch([5, 2, 9], repeats=2)
    assert [(r.task_index, r.repeat, r.success) for r in rollouts] == [
        (5, 0, True), (5, 1, True), (2, 0, False), (2, 1, False), (9, 0, True), (9, 1, True),
    ]  # fmt: skip


def test_a_stream_may_be_endless(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder()
    runner = TrajectoryRunner(addition(), scripted(script), batch_size=4)

    async def first(count: int) -> list[int]:
        taken = []
        async with aclosing(runner.stream(itertools.cycle(range(10)))) as stream:
            async for rollout in stream:
                taken.append(rollout.task_index)
                if len(taken) == count:
                    return taken
        return taken

    assert len(asyncio.run(first(25))) == 25
    assert len(script.requests) <= 25 + 2 * 4


def test_it_works_inside_a_running_loop(addition: Any, recorder: Any, scripted: Any) -> None:
    runner = TrajectoryRunner(addition(), scripted(recorder()))

    async def notebook() -> float:
        return runner.run_trajectory(1).reward + sum(r.reward for r in await runner.arun_batch([2, 3]))

    assert asyncio.run(notebook()) == 3.0


def test_a_branch_goes_on_from_where_it_was_cut(countdown: Any, scripted: Any) -> None:
    seen: list[Any] = []

    def script(request: Any) -> str:
        seen.append(request.messages)
        return "down"

    runner = TrajectoryRunner(countdown(), scripted(script))
    whole = runner.run_trajectory(3)
    assert whole.trajectory is not None
    seen.clear()
    branch = runner.run_trajectory(3, repeat=1, start=whole.trajectory.branch(2))
    assert branch.trajectory is not None
    assert branch.trajectory.transitions[:2] == whole.trajectory.transitions[:2]
    assert (len(branch.trajectory), len(seen), branch.success) == (4, 2, True)
    assert seen[0] == whole.requests[2]


# -- errors -----------------------------------------------------------------------------------------------


def test_a_backend_error_is_part_of_the_rollout(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder(fail={1: ContextOverflow("scripted", "too long")})
    rollouts = TrajectoryRunner(addition(), scripted(script)).run_batch(range(3))
    assert [r.success for r in rollouts] == [True, None, True]
    error = rollouts[1].error
    assert error is not None
    assert (error.type, error.message, error.traceback) == ("ContextOverflow", "scripted: too long", "")


def test_a_fatal_backend_error_is_raised(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder(fail={1: AuthenticationFailed("scripted", "wrong key")})
    with pytest.raises(AuthenticationFailed, match="wrong key"):
        TrajectoryRunner(addition(), scripted(script)).run_batch(range(3))


@pytest.mark.parametrize(
    "broken", [ZeroDivisionError("by zero"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_whatever_an_environment_raises_is_said(
    addition: Any, recorder: Any, scripted: Any, broken: BaseException
) -> None:
    rollouts = TrajectoryRunner(addition(breaks={1: broken}), scripted(recorder())).run_batch(range(3))
    assert [r.success for r in rollouts] == [True, None, True]
    error = rollouts[1].error
    assert error is not None
    if isinstance(broken, ZeroDivisionError):
        assert (error.type, error.message) == ("ZeroDivisionError", "by zero")
        assert "_score" in error.traceback
    else:
        assert error.type == "UpstreamFailed"
        assert type(broken).__name__ in error.message


@pytest.mark.parametrize("broken", [SystemExit(3), asyncio.CancelledError()])
def test_whatever_a_backend_raises_is_said(
    addition: Any, recorder: Any, scripted: Any, broken: BaseException
) -> None:
    rollouts = TrajectoryRunner(addition(), scripted(recorder(fail={1: broken}))).run_batch(range(3))
    assert [r.success for r in rollouts] == [True, None, True]
    error = rollouts[1].error
    assert error is not None
    assert error.type == type(broken).__name__


def test_errors_without_a_text_or_with_too_much_of_it() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert RolloutError.of(Mute()).message == "(its text could not be made: ValueError)"
    assert RolloutError.of(ValueError("x" * 5000)).message == "x" * 4000 + "... (5000 characters)"


def test_an_environment_that_raises_stop_iteration_does_not_hang_the_run(
    addition: Any, recorder: Any, scripted: Any
) -> None:
    class Empty(addition):  # type: ignore[misc]
        def _start(self, task_index: int, seed: int, options: Any) -> Any:
            return next(iter(()))

    rollout = TrajectoryRunner(Empty(), scripted(recorder())).run_trajectory(0)
    assert rollout.trajectory is None
    assert rollout.error is not None
    assert rollout.error.type == "UpstreamFailed"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_an_error(addition: Any, recorder: Any, scripted: Any, value: float) -> None:
    environment = addition(breaks={0: Signal("score", reward=value)})
    rollout = TrajectoryRunner(environment, scripted(recorder())).run_trajectory(0)
    assert rollout.success is None
    assert rollout.error is not None
    assert rollout.error.type == "ScorerFailed"
    assert str(value) in rollout.error.message


def test_a_score_that_could_not_be_computed_is_an_error_not_a_wrong_answer(
    addition: Any, recorder: Any, scripted: Any
) -> None:
    signal = Signal("score", RewardType.OUTCOME, None, metadata={"error": "the judge did not answer"})
    rollout = TrajectoryRunner(addition(breaks={0: signal}), scripted(recorder())).run_trajectory(0)
    assert rollout.success is None
    assert rollout.error is not None
    assert rollout.error.message == (
        "test/addition: signal 'score' could not be computed: the judge did not answer"
    )


def test_steps_before_an_error_are_kept(countdown: Any, scripted: Any) -> None:
    def script(request: Any) -> str:
        if len(request.messages) > 3:
            raise ContextOverflow("scripted", "too long")
        return "down"

    rollout = TrajectoryRunner(countdown(), scripted(script)).run_trajectory(4)
    assert rollout.error is not None
    assert (rollout.num_turns, rollout.reward, len(rollout.requests)) == (2, 2.0, 2)


def test_a_trajectory_that_takes_too_long_is_given_up(addition: Any, recorder: Any, scripted: Any) -> None:
    release = threading.Event()
    environment = addition(breaks={1: lambda: release.wait(60)})
    runner = TrajectoryRunner(environment, scripted(recorder()), trajectory_timeout=0.3)
    try:
        rollouts = runner.run_batch(range(3))
    finally:
        release.set()
    assert [r.success for r in rollouts] == [True, None, True]
    assert rollouts[1].error is not None
    assert str(rollouts[1].error) == "TimeoutError: not finished after trajectory_timeout=0.3 seconds"


@pytest.mark.parametrize("index", [-1, 10, 10**20])
def test_a_task_index_is_checked_first(addition: Any, recorder: Any, scripted: Any, index: int) -> None:
    script = recorder()
    runner = TrajectoryRunner(addition(), scripted(script))
    with pytest.raises(TaskIndexOutOfRange, match="valid: 0 to 9"):
        runner.run_batch([0, index])
    assert script.requests == []


def test_arguments_are_checked(addition: Any, scripted: Any) -> None:
    with pytest.raises(InvalidOption, match="max_steps"):
        TrajectoryRunner(addition(), scripted(), max_steps=0)
    with pytest.raises(InvalidOption, match="backend"):
        TrajectoryRunner(addition(), "openai")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="repeats"):
        TrajectoryRunner(addition(), scripted()).run_batch([0], repeats=0)
    with pytest.raises(InvalidOption, match="task_index"):
        TrajectoryRunner(addition(), scripted()).run_trajectory("3")  # type: ignore[arg-type]


# -- threads ----------------------------------------------------------------------------------------------


def test_slow_environments_do_not_block_the_loop_or_one_another(
    addition: Any, recorder: Any, scripted: Any
) -> None:
    # 40 steps wait for one another: on fewer threads, or on the loop's own, they would wait for ever.
    together = threading.Barrier(40, timeout=30)
    environment = addition(40, breaks=dict.fromkeys(range(40), together.wait))
    rollouts = TrajectoryRunner(environment, scripted(recorder()), batch_size=40).run_batch(range(40))
    assert [r.success for r in rollouts] == [True] * 40


def test_a_natively_async_environment_stays_on_the_loop(addition: Any, recorder: Any, scripted: Any) -> None:
    threads = set()

    class Native(addition):  # type: ignore[misc]
        async def areset(self, **arguments: Any) -> tuple[State[Any], dict[str, Any]]:
            threads.add(threading.current_thread())
            return self.reset(**arguments)  # type: ignore[no-any-return]

        async def astep(self, state: State[Any], action: Action) -> StepResult:
            threads.add(threading.current_thread())
            return self.step(state, action)  # type: ignore[no-any-return]

    runner = TrajectoryRunner(Native(), scripted(recorder()))
    assert asyncio.run(runner.arun_trajectory(0)).success
    assert threads == {threading.main_thread()}
