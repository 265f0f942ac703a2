from __future__ import annotations

import asyncio
import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llenvs.core import Signal, Trajectory, Usage
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange
from llenvs.evaluation import (
    RunFolderError,
    TooManyErrors,
    arun_evaluation,
    read_trajectories,
    run_evaluation,
)
from llenvs.inference import SamplingParams
from llenvs.inference.errors import AuthenticationFailed, ConnectionFailed, ContextOverflow


def keys(folder: Path) -> list[tuple[int, int]]:
    return sorted((r["task_index"], r["repeat"]) for r in read_trajectories(folder))


# -- figures ----------------------------------------------------------------------------------------------


def test_the_figures(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder(wrong=[0, 1])
    result = run_evaluation(addition(), scripted(script), log=())
    assert (result.num_done, result.num_planned, result.complete) == (10, 10, True)
    assert (result.success_rate, result.mean_reward, result.error_rate) == (0.8, 0.8, 0.0)
    assert result.success_interval is not None
    assert (round(result.success_interval.low, 4), round(result.success_interval.high, 4)) == (0.4902, 0.9433)
    assert result.reward_interval is not None
    assert 0.4 <= result.reward_interval.low < 0.8 < result.reward_interval.high <= 1.0
    # answers: "no idea" twice, one digit for tasks 2 to 8, "10"
    assert result.signals["length"].mean == pytest.approx((2 * 7 + 7 * 1 + 2) / 10)
    assert result.signals["score"].count == 10
    # "What is 3 + 1?" is five words, "no idea" two
    assert result.usage == Usage(prompt_tokens=50, completion_tokens=8 + 2 * 2)
    assert result.pass_at_k == {1: 0.8}
    assert result.mean_turns == 1.0
    assert str(result).startswith("test/addition: success 80.0% [49.0%, 94.3%], reward 0.800")


def test_num_tasks_and_task_indices(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder()
    assert run_evaluation(addition(), scripted(script), num_tasks=3, log=()).num_done == 3
    assert sorted(script.asked) == [0, 1, 2]
    script.asked.clear()
    assert run_evaluation(addition(), scripted(script), task_indices=[7, 4], log=()).num_done == 2
    assert sorted(script.asked) == [4, 7]
    assert run_evaluation(addition(), scripted(script), num_tasks=99, log=()).num_done == 10


def test_repeats_give_pass_at_k(addition: Any, scripted: Any) -> None:
    asked: dict[str, int] = {}

    def script(request: Any) -> str:
        # task 0: right in one of four attempts; task 1: in two; task 2: never; task 3: always
        text = request.messages[-1].content
        asked[text] = asked.get(text, 0) + 1
        task = int(text.split()[2])
        return str(task + 1) if asked[text] <= {0: 1, 1: 2, 2: 0, 3: 4}[task] else "?"

    result = run_evaluation(addition(4), scripted(script), repeats=4, batch_size=1, log=())
    assert (result.num_done, result.num_judged, result.num_successes) == (16, 16, 7)
    assert result.success_rate == 7 / 16
    # per task 1 - C(4 - c, k) / C(4, k) for c = 1, 2, 0, 4
    assert result.pass_at_k == pytest.approx(
        {1: 7 / 16, 2: (1 / 2 + 5 / 6 + 0 + 1) / 4, 3: (3 / 4 + 1 + 0 + 1) / 4, 4: (1 + 1 + 0 + 1) / 4}
    )


def test_errors_are_kept_apart_from_failures(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder(wrong=[0], fail={1: ContextOverflow("scripted", "too long")})
    environment = addition(breaks={2: ZeroDivisionError("by zero"), 3: Signal("score", reward=float("nan"))})
    result = run_evaluation(environment, scripted(script), num_tasks=8, log=())
    assert (result.num_done, result.num_errors, result.num_scored) == (8, 3, 5)
    assert result.errors == {"ContextOverflow": 1, "ZeroDivisionError": 1, "ScorerFailed": 1}
    assert (result.success_rate, result.error_rate, result.mean_reward) == (4 / 5, 3 / 8, 4 / 5)


def test_only_errors_give_no_score(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder(fail=dict.fromkeys(range(10), ContextOverflow("scripted", "too long")))
    result = run_evaluation(addition(), scripted(script), log=())
    assert (result.success_rate, result.mean_reward, result.error_rate) == (None, None, 1.0)
    assert (result.success_interval, result.reward_interval, result.pass_at_k) == (None, None, {})
    json.dumps(result.to_dict(), allow_nan=False)


def test_an_environment_that_declares_no_success_has_rewards_alone(
    countdown: Any, scripted: Any, tmp_path: Path
) -> None:

    environment = countdown(3)
    environment._spec = replace(environment.spec, success_signal=None)
    result = run_evaluation(environment, scripted("down"), output_dir=tmp_path, log=())
    assert (result.success_rate, result.mean_reward, result.mean_turns) == (None, 2.0, 2.0)
    assert run_evaluation(environment, scripted("down"), output_dir=tmp_path, log=()).mean_reward == 2.0


def test_the_table_fits_eighty_columns(addition: Any, recorder: Any, scripted: Any) -> None:
    from rich.console import Console

    result = run_evaluation(addition(), scripted(recorder(wrong=[0, 1])), log=())
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(result.table())
    (row,) = [line for line in console.export_text().splitlines() if "test/addition" in line]
    assert row.split() == ["test/addition", "10/10", "0", "80.0%", "49.0%", "-", "94.3%", "0.800"]


# -- entries ----------------------------------------------------------------------------------------------


def test_async_and_inside_a_running_loop(addition: Any, recorder: Any, scripted: Any) -> None:
    async def notebook() -> tuple[float | None, float | None]:
        there = await arun_evaluation(addition(), scripted(recorder()), log=())
        here = run_evaluation(addition(), scripted(recorder()), log=())
        return there.success_rate, here.success_rate

    assert asyncio.run(notebook()) == (1.0, 1.0)


def test_rollouts_are_handed_on_as_they_end(addition: Any, recorder: Any, scripted: Any) -> None:
    seen = []
    run_evaluation(addition(), scripted(recorder()), log=(), on_trajectory=seen.append)
    assert sorted(rollout.task_index for rollout in seen) == list(range(10))


def test_arguments_are_checked_before_anything_runs(addition: Any, recorder: Any, scripted: Any) -> None:
    script = recorder()
    backend = scripted(script)
    with pytest.raises(TaskIndexOutOfRange, match="valid: 0 to 9"):
        run_evaluation(addition(), backend, task_indices=[1, 10], log=())
    with pytest.raises(InvalidOption, match="twice"):
        run_evaluation(addition(), backend, task_indices=[1, 1], log=())
    with pytest.raises(InvalidOption, match="num_tasks"):
        run_evaluation(addition(), backend, num_tasks=0, log=())
    with pytest.raises(InvalidOption, match="together"):
        run_evaluation(addition(), backend, num_tasks=1, task_indices=[1], log=())
    with pytest.raises(InvalidOption, match="repeats"):
        run_evaluation(addition(), backend, repeats=0, log=())
    with pytest.raises(InvalidOption, match="batch_size"):
        run_evaluation(addition(), backend, batch_size=0, log=())
    with pytest.raises(InvalidOption, match="backend"):
        run_evaluation(addition(), "openai", log=())  # type: ignore[arg-type]
    with pytest.raises(TaskIndexOutOfRange):
        run_evaluation(addition(0), backend, log=())
    assert script.requests == []


def test_a_server_that_is_not_there_is_one_error(addition: Any, scripted: Any) -> None:
    class Dead(scripted):  # type: ignore[misc]
        async def check(self) -> None:
            raise ConnectionFailed("dead", "no server at localhost")

    with pytest.raises(ConnectionFailed, match="no server"):
        run_evaluation(addition(), Dead(), log=())


def test_a_state_without_an_exact_form_is_an_error_of_its_trajectory(
    addition: Any, scripted: Any, tmp_path: Path
) -> None:
    class Odd(addition):  # type: ignore[misc]
        def _start(self, task_index: int, seed: int, options: Any) -> Any:
            start = super()._start(task_index, seed, options)
            return replace(start, hidden={**start.hidden, "object": object()}) if task_index == 1 else start

    result = run_evaluation(Odd(3), scripted("1"), output_dir=tmp_path, save_states=True, log=())
    assert (result.num_done, result.num_errors) == (3, 1)
    broken = next(r for r in result.trajectories() if r["task_index"] == 1)
    assert (broken["error"]["type"], broken["success"]) == ("EncodingFailed", None)
    assert "hidden" in broken["error"]["message"]


# -- the run folder ---------------------------------------------------------------------------------------


def test_the_folder_holds_everything(countdown: Any, scripted: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "run"
    result = run_evaluation(
        countdown(2), scripted("down"), system_prompt="Count down.", output_dir=folder, save_states=True,
        sampling_params=SamplingParams(temperature=0.5), log=(),
    )  # fmt: skip
    assert sorted(p.name for p in folder.iterdir()) == [
        ".lock", "config.json", "summary.json", "trajectories.jsonl", "versions.json",
    ]  # fmt: skip
    record = next(r for r in result.trajectories() if r["task_index"] == 1)
    exact = Trajectory.from_json(json.dumps(record.pop("trajectory")))
    assert [action.text for action in exact.actions] == ["down", "down"]
    assert exact.transitions[0].generation is not None
    assert record.pop("seconds") >= 0
    assert 0 <= record.pop("seed") < 2**31
    first, second = record.pop("turns")
    assert record == {
        "environment": "test/countdown", "task_index": 1, "repeat": 0, "success": True, "reward": 2.0,
        "signals": {"lowered": 2.0, "done": 1.0}, "error": None, "terminated": True, "truncated": False,
        "num_turns": 2, "usage": {"prompt_tokens": 25, "completion_tokens": 2},
    }  # fmt: skip
    assert first["prompt"] == [
        {"role": "system", "content": "Count down."},
        {"role": "user", "content": "Count down to 0.\n\nThe number is 2."},
    ]
    assert second["prompt"] == [{"role": "user", "content": "The number is 1."}]
    assert (second["response"], second["finish_reason"], second["reward"]) == ("down", "stop", 1.0)
    assert second["signals"] == {"lowered": 1.0, "done": 1.0}
    config = json.loads((folder / "config.json").read_text())
    assert config["model"]["sampling"] == {"temperature": 0.5}
    assert config["environments"][0]["prompt"]["messages"][0] == {"role": "system", "content": "Count down."}
    (session,) = json.loads((folder / "versions.json").read_text())
    assert session["distributions"]["llenvs-core"]
    assert json.loads((folder / "summary.json").read_text())["environments"]["test/countdown"]["success_rate"] == 1


def test_nothing_is_paid_for_twice(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    script = recorder(wrong=[3])
    first = run_evaluation(addition(), scripted(script), num_tasks=4, output_dir=tmp_path, log=())
    more = run_evaluation(addition(), scripted(script), repeats=2, output_dir=tmp_path, log=())
    assert sorted(script.asked) == sorted([*range(10), *range(10)])
    assert keys(tmp_path) == [(task, repeat) for task in range(10) for repeat in (0, 1)]
    again = run_evaluation(addition(), scripted(script), repeats=2, output_dir=tmp_path, log=())
    assert len(script.asked) == 20
    assert (again.num_done, again.success_rate, again.success_interval) == (20, 0.9, more.success_interval)
    assert again.signals == pytest.approx(more.signals)
    assert again.usage == more.usage
    fewer = run_evaluation(addition(), scripted(script), num_tasks=4, output_dir=tmp_path, log=())
    assert (fewer.num_done, fewer.success_rate, fewer.usage) == (4, 0.75, first.usage)
    assert len(script.asked) == 20


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_half_written_line_is_run_again(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path, cut: int
) -> None:
    run_evaluation(addition(), scripted(recorder()), batch_size=1, output_dir=tmp_path, log=())
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(keys(tmp_path)) == 9
    script = recorder()
    result = run_evaluation(addition(), scripted(script), output_dir=tmp_path, log=())
    assert script.asked == [9]
    assert (keys(tmp_path), result.success_rate) == ([(task, 0) for task in range(10)], 1.0)


def test_only_half_a_line_is_no_line(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    run_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, num_tasks=1, log=())
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(path.read_bytes()[:50])
    assert run_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, num_tasks=2, log=()).complete
    assert len(keys(tmp_path)) == 2


@pytest.mark.parametrize(("name", "text"), [("config.json", "[]"), ("config.json", "{"), ("versions.json", "{}")])
def test_a_damaged_file_is_named(addition: Any, scripted: Any, tmp_path: Path, name: str, text: str) -> None:
    run_evaluation(addition(2), scripted("1"), output_dir=tmp_path, log=())
    (tmp_path / name).write_text(text)
    with pytest.raises(RunFolderError, match=rf"{name}: is damaged"):
        run_evaluation(addition(2), scripted("1"), output_dir=tmp_path, log=())


def test_a_damaged_line_is_named(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    run_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, log=())
    path = tmp_path / "trajectories.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 20 + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(RunFolderError, match=r"line 3 is damaged.*remove that line"):
        run_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, log=())
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert run_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, log=()).complete


def test_errors_are_tried_again_when_resumed(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    failing = recorder(fail={4: ContextOverflow("scripted", "too long"), 5: ContextOverflow("scripted", "x")})
    assert run_evaluation(addition(), scripted(failing), output_dir=tmp_path, log=()).num_errors == 2
    script = recorder()
    kept = run_evaluation(addition(), scripted(script), output_dir=tmp_path, retry_errors=False, log=())
    assert (kept.num_errors, script.asked) == (2, [])
    result = run_evaluation(addition(), scripted(script), output_dir=tmp_path, log=())
    assert (result.num_errors, sorted(script.asked)) == (0, [4, 5])
    assert keys(tmp_path) == [(task, 0) for task in range(10)]
    retried = [json.loads(line) for line in (tmp_path / "retried.jsonl").read_text().splitlines()]
    assert sorted((r["task_index"], r["error"]["type"]) for r in retried) == [
        (4, "ContextOverflow"),
        (5, "ContextOverflow"),
    ]


def test_another_configuration_is_refused_and_the_field_named(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path
) -> None:
    def run(environment: Any = None, model: str = "m", **options: Any) -> None:
        backend = scripted(recorder(), model=model)
        run_evaluation(environment or addition(), backend, output_dir=tmp_path, log=(), **options)

    run(seed=1, sampling_params=SamplingParams(temperature=0.5))
    same: dict[str, Any] = {"seed": 1, "sampling_params": SamplingParams(temperature=0.5)}
    run(**same, batch_size=2, num_tasks=3, max_errors=5)
    with pytest.raises(RunFolderError, match=r"seed is 1 there and 2 here"):
        run(**{**same, "seed": 2})
    with pytest.raises(RunFolderError, match=r"model\.sampling\.temperature is 0\.5 there and null here"):
        run(seed=1)
    with pytest.raises(RunFolderError, match=r'model\.model is "m" there and "n" here; choose another output_dir'):
        run(model="n", **same)
    with pytest.raises(RunFolderError, match=r"environments\[0\]\.available_tasks is 10 there and 11 here"):
        run(addition(11), **same)
    with pytest.raises(RunFolderError, match=r"environments\[0\]\.prompt\.messages"):
        run(system_prompt="Be brief.", **same)
    with pytest.raises(RunFolderError, match=r"environments\[0\]\.max_steps is null there and 3 here"):
        run(max_steps=3, **same)
    with pytest.raises(RunFolderError, match="already holds a run"):
        run(resume=False, **same)
    assert len(keys(tmp_path)) == 10


def test_a_run_that_stopped_before_its_first_trajectory_binds_nobody(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path
) -> None:
    refusing = recorder(fail={i: AuthenticationFailed("scripted", "no key") for i in range(10)})
    with pytest.raises(AuthenticationFailed):
        run_evaluation(addition(), scripted(refusing), seed=1, output_dir=tmp_path, log=())
    result = run_evaluation(addition(), scripted(recorder(), model="n"), seed=2, output_dir=tmp_path, log=())
    assert (result.num_done, len(keys(tmp_path))) == (10, 10)


def test_a_folder_of_someone_else_is_refused(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    (tmp_path / "trajectories.jsonl").write_text('{"theirs": 1}\n')
    with pytest.raises(RunFolderError, match=r"no config\.json"):
        run_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, log=())
    assert (tmp_path / "trajectories.jsonl").read_text() == '{"theirs": 1}\n'
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RunFolderError, match="cannot be used as output_dir"):
        run_evaluation(addition(), scripted(recorder()), output_dir=file, log=())


def test_two_runs_of_one_process_cannot_have_one_folder(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path
) -> None:
    def script(request: Any) -> str:
        with pytest.raises(RunFolderError, match="another run is writing there"):
            asyncio.run(arun_evaluation(addition(), scripted(recorder()), output_dir=tmp_path, log=()))
        return "1"

    class InThread(scripted):  # type: ignore[misc]
        async def _generate(self, request: Any, n: int) -> Any:
            from llenvs.core import Generation

            return [Generation(await asyncio.to_thread(script, request))]

    assert run_evaluation(addition(1), InThread(), output_dir=tmp_path, log=()).success_rate == 1.0
    assert run_evaluation(addition(1), InThread(), output_dir=tmp_path, log=()).complete


# -- stopping ---------------------------------------------------------------------------------------------


def test_a_fatal_error_stops_the_run_and_keeps_what_is_done(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path
) -> None:
    script = recorder(fail={6: AuthenticationFailed("scripted", "wrong key")})
    with pytest.raises(AuthenticationFailed, match="wrong key"):
        run_evaluation(addition(), scripted(script), batch_size=1, output_dir=tmp_path, log=())
    assert keys(tmp_path) == [(task, 0) for task in range(6)]
    assert script.asked == list(range(7))
    assert json.loads((tmp_path / "summary.json").read_text())["num_done"] == 6
    script.fail.clear()
    assert run_evaluation(addition(), scripted(script), output_dir=tmp_path, log=()).success_rate == 1.0
    assert len(script.asked) == 7 + 4


def test_too_many_errors_stop_the_run(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    script = recorder(fail=dict.fromkeys(range(10), ContextOverflow("scripted", "too long")))
    with pytest.raises(TooManyErrors, match=r"3 trajectories.*max_errors=2.*too long.*kept in"):
        run_evaluation(addition(), scripted(script), batch_size=1, max_errors=2, output_dir=tmp_path, log=())
    assert len(keys(tmp_path)) == 3


def test_cancelling_keeps_what_is_done(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    script = recorder()

    async def cancelled() -> None:
        def end(rollout: Any) -> None:
            if rollout.task_index == 4:
                run.cancel()

        run = asyncio.ensure_future(
            arun_evaluation(
                addition(), scripted(script), batch_size=1, output_dir=tmp_path, log=(), on_trajectory=end
            )
        )
        with pytest.raises(asyncio.CancelledError):
            await run
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(cancelled())
    assert keys(tmp_path)[:5] == [(task, 0) for task in range(5)]
    assert len(keys(tmp_path)) < 10
    assert run_evaluation(addition(), scripted(script), output_dir=tmp_path, log=()).complete
    assert len(keys(tmp_path)) == 10


# -- promises ---------------------------------------------------------------------------------------------


def test_hidden_state_reaches_no_prompt_and_no_record(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path
) -> None:
    script = recorder()
    run_evaluation(
        addition(), scripted(script), system_prompt="general_reasoning", output_dir=tmp_path, log=("file",)
    )
    assert "XYZZY" not in repr(script.requests)
    for path in tmp_path.iterdir():
        assert "XYZZY" not in path.read_text()


def test_odd_text_and_odd_numbers_are_strict_json(addition: Any, scripted: Any, tmp_path: Path) -> None:
    def script(request: Any) -> str:
        return "lone \ud800 surrogate, line\u2028separator, null \0, \nnewline"

    environment = addition(breaks={0: Signal("score", reward=float("-inf"))})
    run_evaluation(environment, scripted(script), output_dir=tmp_path, log=("file",))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for name in ("trajectories.jsonl", "events.jsonl"):
        data = (tmp_path / name).read_bytes()
        records = [json.loads(line.decode(), parse_constant=refuse) for line in data.split(b"\n")[:-1]]
        assert len(records) >= 10
    records = list(read_trajectories(tmp_path))
    assert all(r["turns"][0]["response"] == script(None) for r in records)
    (broken,) = [r for r in records if r["error"]]
    assert float(broken["reward"]) == float("-inf")
    assert run_evaluation(
        environment, scripted(script), output_dir=tmp_path, retry_errors=False, log=()
    ).num_errors


def test_memory_does_not_grow_with_the_number_of_tasks(addition: Any, recorder: Any, scripted: Any) -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    class Text:
        """Something in each state that can be counted."""

    class Counted(addition):  # type: ignore[misc]
        def _start(self, task_index: int, seed: int, options: Any) -> Any:
            nonlocal most
            start = super()._start(task_index, seed, options)
            thing = Text()
            alive.add(thing)
            most = max(most, len(alive))
            start.hidden["thing"] = thing
            return start

    result = run_evaluation(Counted(3000), scripted("x"), batch_size=8, log=())
    assert result.num_done == 3000
    assert most <= 2 * 8 + 2
