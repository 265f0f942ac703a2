"""Environments that fail, in every hook: by an exception, an exit, no answer, and a killed process.

None of them becomes a reward of 0 where the trainer has a word for it, and none ends what scores it.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from arithmetic import ArithmeticOptions, Times
from failing import FailingAdapter, installed

from llenvs import Action, DatasetProvider, Scorer, Signal, environment_registry, make
from llenvs.integrations.episode import Episode
from llenvs.integrations.row_scoring import NotScored
from llenvs.integrations.scorer_pool import ScorerPool
from llenvs.integrations.trl import make_trl_dataset, make_trl_environment, make_trl_reward_fn, make_trl_rollout_fn
from llenvs.integrations.verl import acompute_score, make_verl_dataset, make_verl_reward_fn

LIMIT = 1.0
SAID = {
    "raise": "OSError: the sandbox is gone",
    "exit": "SystemExit",
    "hang": "within 1.0 s",
    "die": "ContainerFailed",
}


@pytest.fixture(autouse=True)
def _failing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environment_registry._registered, "failing", FailingAdapter())
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The environments in processes of their own, which can be killed."""
    pytest.importorskip("llenvs_container", reason="needs llenvs-container, for a process to kill")
    container = {
        "runtime": "process",
        "restarts": 1000,
        "env": {"PYTHONPATH": installed(tmp_path_factory.mktemp("failing"))},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(environment_registry._registered, "failing", FailingAdapter())
        made = {name: make(f"failing/{name}", container=container) for name in ("once", "often")}
    yield made
    for environment in made.values():
        environment.close()


@pytest.fixture
def failing(request: pytest.FixtureRequest) -> tuple[str, Any, Any]:
    """A way to fail, and the environments of one turn and of several in which it happens."""
    way = request.param
    if way == "die":
        made = request.getfixturevalue("behind")
        return way, made["once"], made["often"]
    return way, make("failing/once"), make("failing/often")


def ways(*names: str) -> pytest.MarkDecorator:
    """Each of these ways to fail."""
    return pytest.mark.parametrize("failing", names, indirect=True)


@ways("raise", "exit", "hang", "die")
def test_rewards_of_texts(failing: tuple[str, Any, Any], caplog: pytest.LogCaptureFixture) -> None:
    way, once, _ = failing
    with_limit = {"timeout": LIMIT} if way == "hang" else {}
    provider = DatasetProvider(once)
    columns = {"llenvs": [provider[1].task_id] * 2, "task_index": [1, 1]}
    first, second = make_trl_reward_fn(once, **with_limit)(["?"] * 2, [way, "1"], **columns)
    assert first is None
    assert second in ((1.0, None) if way == "die" else (1.0,))  # both may be in the process that is killed
    assert SAID[way] in caplog.text
    if way == "die":
        return  # each further one kills a process six times
    row = {"llenvs": provider[1].task_id}
    reward = make_verl_reward_fn(once, retries=0, **with_limit)
    assert reward("s", way, "", row) == {"score": 0.0, "acc": 0.0, "llenvs_error": 1.0, "llenvs_turns": 0.0}
    assert reward("s", "1", "", row) == {"score": 1.0, "acc": 1.0, "llenvs_error": 0.0, "llenvs_turns": 1.0}
    with pytest.raises(NotScored, match="task 1"):
        make_verl_reward_fn(once, retries=0, on_error="raise", **with_limit)("s", way, "", row)
    scores = asyncio.run(acompute_score("s", way, "", row, retries=0, timeout=LIMIT))
    assert scores["llenvs_error"] == 1.0


class FailsOnce(Times):
    """Its first scorings of a task fail, `times` of them."""

    def __init__(self, times: int) -> None:
        super().__init__(ArithmeticOptions())
        self.left = times
        self.steps = 0

    def _score(self, hidden: Any, answer: str | None) -> Iterable[Signal]:
        self.steps += 1
        if self.steps <= self.left:
            raise OSError("the sandbox is gone")
        return super()._score(hidden, answer)


@pytest.mark.parametrize("times", [1, 2])
def test_a_failure_that_passes_is_tried_again_in_every_reward_function(
    times: int, caplog: pytest.LogCaptureFixture
) -> None:
    said = "<answer>6</answer>"
    trl = make_trl_reward_fn(FailsOnce(times), retries=times)(["?"], [said], task_index=[3])
    verl = make_verl_reward_fn(FailsOnce(times), retries=times, on_error="raise")("s", said, "", {"task_index": 3})
    awaited = make_verl_reward_fn(FailsOnce(times), retries=times, asynchronous=True)
    assert trl == [1.0]
    assert verl["score"] == asyncio.run(awaited("s", said, "", {"task_index": 3}))["score"] == 1.0  # type: ignore[arg-type]
    assert caplog.text == ""
    env = FailsOnce(times)
    assert make_trl_reward_fn(env, retries=times - 1)(["?"], [said], task_index=[3]) == [None]
    assert (env.steps, caplog.text.count("task 3 was not scored")) == (times, 1)


def test_openrlhf_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("torch", reason="needs torch: OpenRLHF takes tensors")
    from llenvs.integrations.openrlhf import make_openrlhf_reward_fn

    made = make_openrlhf_reward_fn(FailsOnce(1))(["P<answer>6</answer>"], ["P"], ["3"])
    assert (made["rewards"].tolist(), caplog.text) == ([1.0], "")
    with pytest.raises(NotScored, match="task 3"):
        make_openrlhf_reward_fn(FailsOnce(1), retries=0)(["P<answer>6</answer>"], ["P"], ["3"])


@ways("raise", "exit", "hang")
def test_rewards_of_openrlhf(failing: tuple[str, Any, Any]) -> None:
    pytest.importorskip("torch", reason="needs torch: OpenRLHF takes tensors")
    from llenvs.integrations.openrlhf import make_openrlhf_reward_fn

    way, once, _ = failing
    with_limit = {"timeout": LIMIT} if way == "hang" else {}
    label = DatasetProvider(once)[1].task_id
    with pytest.raises(NotScored, match="task 1"):
        make_openrlhf_reward_fn(once, **with_limit)([f"P{way}"], ["P"], [label])
    made = make_openrlhf_reward_fn(once, on_error=-1.0, **with_limit)([f"P{way}"], ["P"], [label])
    assert (made["rewards"].tolist(), made["extra_logs"]["llenvs_error"].tolist()) == ([-1.0], [1.0])


@ways("raise", "exit", "hang", "die")
def test_episodes_without_a_loop(failing: tuple[str, Any, Any], caplog: pytest.LogCaptureFixture) -> None:
    """As TRL's environment_factory drives them."""
    way, _, often = failing
    environment: Any = make_trl_environment(often, retries=0, timeout=LIMIT if way == "hang" else None)()
    environment.reset(**DatasetProvider(often)[2].row())
    assert environment.act(action="0") == "No."
    with pytest.raises(Exception, match="The environment failed"):
        environment.act(action=way)
    assert environment.get_reward() is None
    assert SAID[way] in caplog.text
    environment.reset(**DatasetProvider(often)[2].row())  # the next episode of this instance
    environment.act(action="2")
    assert environment.get_reward() == 1.0


def test_a_reset_that_hangs_or_exits() -> None:
    for way, said in (("hang", "no answer within 0.2 s"), ("exit", "SystemExit")):
        env = make("failing/often")
        start = env._start
        env._start = functools.partial(_failing_start, way)  # type: ignore[method-assign]
        episode = Episode(ScorerPool(env, timeout=0.2), {"task_index": 0}, retries=0)
        episode.begin()
        assert said in str(episode.failure)
        assert episode.result().reward is None
        env._start = start  # type: ignore[method-assign]
        again = Episode(ScorerPool(env, timeout=0.2), {"task_index": 0})
        again.begin()
        again.act(Action("0"))
        assert again.result().reward == 1.0


def _failing_start(way: str, *_: Any) -> Any:
    if way == "exit":
        raise SystemExit
    threading.Event().wait(60)


def test_a_failure_that_passes_is_tried_again() -> None:
    env = make("failing/often")
    advance, failures = env._advance, iter([True, False])

    def once_failing(state: Any, action: Any) -> Any:
        if next(failures, False):
            raise OSError("for a moment")
        return advance(state, action)

    env._advance = once_failing  # type: ignore[method-assign]
    episode = Episode(ScorerPool(env), {"task_index": 1})
    episode.begin()
    episode.act(Action("1"))
    assert (episode.result().reward, episode.turns) == (1.0, 1)


@ways("raise", "exit", "hang")
def test_rollouts_of_trl(failing: tuple[str, Any, Any], tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs TRL: pip install trl==1.16.0 jmespath, with torch")
    from grpo import trained
    from toy_model import scripted_model

    way, _, often = failing
    rollout = make_trl_rollout_fn(often, retries=0, timeout=LIMIT if way == "hang" else None)
    said = iter(["1", way, "0", "x", "1", "x", "x"])
    seen: list[Any] = []

    def watched(prompts: Any, completions: Any, **columns: Any) -> Any:
        seen.extend(rollout.reward(prompts, completions, **columns))
        return seen

    trainer = trained(
        scripted_model(lambda prompt: next(said)),
        tmp_path,
        train_dataset=make_trl_dataset(often, indices=[1], identity_in_prompt=True),
        reward_funcs=watched,
        rollout_func=rollout,
    )
    # turns: "1"; the failure; "0", then "1"; "x", then "x" and "x"
    assert seen[:3] == [1.0, None, 1.0]
    assert trainer.rows()[1]["advantage"] == 0.0
    assert dict(trainer.state.log_history[0])["llenvs/error"] == 0.25


@ways("exit", "hang")
def test_agent_loops_of_verl(failing: tuple[str, Any, Any], tmp_path: Path) -> None:
    for name in ("torch", "verl", "ray"):
        pytest.importorskip(
            name, reason="needs veRL: pip install --no-deps verl==0.9.1, with ray tensordict torch"
        )
    import verl_worker

    way, _, often = failing
    loops = tmp_path / "agent.yaml"
    loops.write_text(
        "- name: llenvs\n  _target_: llenvs.integrations.verl.LLEnvsAgentLoop\n  retries: 0\n"
        + (f"  timeout: {LIMIT}\n" if way == "hang" else "")
    )
    config = verl_worker.verl_config(tmp_path, f"actor_rollout_ref.rollout.agent.agent_loop_config_path={loops}")
    rows = list(make_verl_dataset(often, indices=[1, 2]))
    made, _ = verl_worker.rolled_out(config, lambda prompt: way if "Say 1" in prompt else "2", rows)
    assert made.batch["rm_scores"].sum(1).tolist() == [0.0, 1.0]
    assert made.batch["response_mask"].sum(1).tolist() == [0, 2]
    assert made.non_tensor_batch["llenvs_error"].tolist() == [1.0, 0.0]


@ways("exit", "hang")
def test_executors_of_openrlhf(failing: tuple[str, Any, Any], caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("openrlhf.utils.agent", reason="needs OpenRLHF: pip install --no-deps openrlhf==0.11.2")
    from test_openrlhf import executed

    from llenvs.integrations.openrlhf import make_openrlhf_agent_executor, make_openrlhf_dataset

    way, _, often = failing
    options = {"retries": 0, "timeout": LIMIT if way == "hang" else None}
    row = make_openrlhf_dataset(often, indices=[1])[0]
    with pytest.raises(NotScored, match="task 1"):
        executed(make_openrlhf_agent_executor(often, **options)(), row, lambda prompt: way)
    assert SAID[way] in caplog.text
    made, _ = executed(make_openrlhf_agent_executor(often, on_error=-1.0, **options)(), row, lambda prompt: way)
    assert (made["reward"], made["extra_logs"]["llenvs_error"]) == (-1.0, 1.0)
    made, _ = executed(make_openrlhf_agent_executor(often, **options)(), row, lambda prompt: "1")
    assert made["reward"] == 1.0


def test_a_process_that_is_killed_between_turns(behind: dict[str, Any]) -> None:
    """A step depends on its arguments alone, so nothing is lost and no reward is missing."""
    environment: Any = make_trl_environment(behind["often"])()
    environment.reset(**DatasetProvider(behind["often"])[1].row())
    environment.act(action="0")
    Scorer(behind["often"]).score(2, ["die"])
    environment.act(action="1")
    assert environment.get_reward() == 1.0
