"""Rows and their tasks, in every hook: a row of another version ends the run, environments mix in one data set."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from llenvs import DatasetProvider, environment_registry
from llenvs.integrations import TaskMismatch
from llenvs.integrations.openrlhf import make_openrlhf_reward_fn
from llenvs.integrations.trl import make_trl_dataset, make_trl_environment, make_trl_reward_fn, make_trl_rollout_fn
from llenvs.integrations.verl import compute_score, make_verl_dataset, make_verl_reward_fn

TIMES, CLIMB = "arithmetic/times", "arithmetic/climb"
LEGS = ("reasoning_gym/leg_counting", {"size": 100, "seed": 42})
NEEDS_TRL = "needs TRL: pip install trl==1.16.0 jmespath, with torch"
NEEDS_VERL = "needs veRL: pip install --no-deps verl==0.9.1"
NEEDS_OPENRLHF = "needs OpenRLHF: pip install --no-deps openrlhf==0.11.2"


@pytest.fixture(autouse=True)
def _guess_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from guess import GuessAdapter

    monkeypatch.setitem(environment_registry._registered, "guess", GuessAdapter())
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def other(address: str) -> str:
    """The identity of task 1 in a version in which it has another prompt."""
    identity = json.loads(DatasetProvider(address)[1].task_id)
    return json.dumps({**identity, "prompt_sha256": "0" * 64})


# -- another version --------------------------------------------------------------------------------------


def test_rewards_of_another_version() -> None:
    row = other(TIMES)
    for env in (None, TIMES):
        with pytest.raises(TaskMismatch):
            make_trl_reward_fn(env)(["?"] * 2, ["x"] * 2, llenvs=[DatasetProvider(TIMES)[1].task_id, row])
        with pytest.raises(TaskMismatch):
            make_verl_reward_fn(env)("s", "x", "", {"llenvs": row, "task_index": 1})
    with pytest.raises(TaskMismatch):
        make_trl_environment(CLIMB)().reset(llenvs=other(CLIMB), prompt="?")


def test_rewards_of_openrlhf_of_another_version() -> None:
    pytest.importorskip("torch", reason="needs torch: OpenRLHF takes tensors")
    for env in (None, TIMES):
        with pytest.raises(TaskMismatch):
            make_openrlhf_reward_fn(env)(["Px"], ["P"], [other(TIMES)])


def test_rollouts_of_another_version(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason=NEEDS_TRL)
    from grpo import trained
    from toy_model import scripted_model

    def changed(row: Any) -> Any:
        return {"prompt": [{**row["prompt"][0], "llenvs": other(CLIMB)}]}

    rollout = make_trl_rollout_fn(CLIMB)
    with pytest.raises(TaskMismatch):
        trained(
            scripted_model(lambda prompt: "up"),
            tmp_path,
            train_dataset=make_trl_dataset(CLIMB, indices=[1], identity_in_prompt=True).map(changed),
            reward_funcs=rollout.reward,
            rollout_func=rollout,
        )


def test_executors_of_another_version(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("openrlhf.utils.agent", reason=NEEDS_OPENRLHF)
    from test_openrlhf import executed

    from llenvs.integrations.openrlhf import make_openrlhf_agent_executor

    row = {"prompt": [{"role": "user", "content": "?"}], "label": other(CLIMB)}
    with pytest.raises(TaskMismatch):
        executed(make_openrlhf_agent_executor()(), row, lambda prompt: "up")
    assert "another prompt" in caplog.text


# -- several environments in one data set -----------------------------------------------------------------


def test_rewards_of_several_environments() -> None:
    rows = [DatasetProvider(TIMES)[3].task_id, DatasetProvider(TIMES, options={"by": 3})[3].task_id]
    said = ["<answer>6</answer>", "<answer>9</answer>"]
    assert make_trl_reward_fn()(["?"] * 4, said * 2, llenvs=[*rows, *reversed(rows)]) == [1.0, 1.0, 0.0, 0.0]
    # a given environment is that of the rows without an identity alone
    assert make_trl_reward_fn(TIMES)(["?"] * 2, said, llenvs=rows) == [1.0, 1.0]
    for text, row in zip(said, rows, strict=True):
        assert compute_score("s", text, "", {"llenvs": row})["score"] == 1.0


CALL = '<tool_call>\n{"name": "guess", "arguments": {"number": 7}}\n</tool_call>'


def acting(prompt: str) -> str:
    """Plays both games."""
    return CALL if "number" in prompt else "up"


def test_rollouts_of_several_environments(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason=NEEDS_TRL)
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    from grpo import trained
    from toy_model import scripted_model

    rollout, seen = make_trl_rollout_fn(None), []

    def watched(prompts: Any, completions: Any, **columns: Any) -> Any:
        rewards = rollout.reward(prompts, completions, **columns)
        seen.extend(zip([prompt[-1]["content"] for prompt in prompts], rewards, strict=True))
        return rewards

    both = [make_trl_dataset(address, indices=[0], identity_in_prompt=True) for address in (CLIMB, "guess/number")]
    trained(
        scripted_model(acting),
        tmp_path,
        config={"per_device_train_batch_size": 8},
        train_dataset=datasets.concatenate_datasets(both),
        reward_funcs=watched,
        rollout_func=rollout,
    )
    assert sorted(set(seen)) == [("Climb to 2. You are at 0.", 3.0), ("Find my number.", 1.0)]
    assert len(seen) == 8


def test_agent_loops_of_several_environments(tmp_path: Path) -> None:
    for name in ("torch", "verl", "ray"):
        pytest.importorskip(name, reason=NEEDS_VERL)
    import verl_worker

    rows = [*make_verl_dataset(CLIMB, indices=[0]), *make_verl_dataset("guess/number", indices=[0])]
    made, _ = verl_worker.rolled_out(verl_worker.verl_config(tmp_path), acting, rows)
    assert made.batch["rm_scores"].sum(1).tolist() == [3.0, 1.0]
    assert made.non_tensor_batch["llenvs_turns"].tolist() == [2.0, 1.0]


def test_executors_of_several_environments() -> None:
    pytest.importorskip("openrlhf.utils.agent", reason=NEEDS_OPENRLHF)
    from test_openrlhf import executed

    from llenvs.integrations.openrlhf import make_openrlhf_agent_executor, make_openrlhf_dataset

    executor = make_openrlhf_agent_executor()()
    rewards = [
        executed(executor, make_openrlhf_dataset(address, indices=[0])[0], acting)[0]["reward"]
        for address in (CLIMB, "guess/number")
    ]
    assert rewards == [3.0, 1.0]


# -- another process --------------------------------------------------------------------------------------


def test_rewards_in_a_process_that_is_spawned() -> None:
    """As asynchronous trainers send them: nothing of this process is there but what was pickled."""
    pytest.importorskip("reasoning_gym", reason="needs llenvs-reasoning-gym")
    address, options = LEGS
    row = DatasetProvider(address, options=options)[0].task_id
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for env in (None, environment_registry.get(address, **options)):
            trl = pool.apply_async(make_trl_reward_fn(env), (["?"], ["<answer>100</answer>"]), {"llenvs": [row]})
            verl = pool.apply_async(make_verl_reward_fn(env), ("s", "<answer>100</answer>", "", {"llenvs": row}))
            assert trl.get(60) == [1.0]
            assert verl.get(60) == {"score": 1.0, "acc": 1.0, "llenvs_error": 0.0, "llenvs_turns": 1.0}
        wrong = json.dumps({**json.loads(row), "prompt_sha256": "0" * 64})
        with pytest.raises(TaskMismatch, match="another prompt"):  # comes back as it is
            pool.apply_async(make_trl_reward_fn(), (["?"], ["x"]), {"llenvs": [wrong]}).get(60)
