"""veRL: rewards through its reward managers, data sets through its data set, episodes through its worker."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llenvs import DatasetProvider, Scorer, environment_registry, make
from llenvs.core.errors import InvalidOption
from llenvs.integrations import TaskMismatch
from llenvs.integrations.row_scoring import NotScored
from llenvs.integrations.verl import (
    acompute_score,
    compute_score,
    compute_score_batch,
    make_verl_dataset,
    make_verl_reward_fn,
)

LEGS = ("reasoning_gym/leg_counting", {"size": 100, "seed": 42})


def extra(task_index: int, environment: tuple[str, dict[str, Any]] = LEGS) -> dict[str, Any]:
    """``extra_info`` of a row."""
    address, options = environment
    return {"llenvs": DatasetProvider(address, options=options)[task_index].task_id}


# -- without veRL -----------------------------------------------------------------------------------------


def test_the_module_does_not_import_verl() -> None:
    code = (
        "import sys, llenvs.integrations.verl as v; "
        "assert 'verl' not in sys.modules and 'torch' not in sys.modules; "
        "assert v.compute_score.__name__ == 'compute_score'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scores_of_rows() -> None:
    pytest.importorskip("reasoning_gym", reason="needs llenvs-reasoning-gym")
    right = compute_score("legs", "<answer>100</answer>", "", extra(0))
    assert right == {"score": 1.0, "acc": 1.0, "llenvs_error": 0.0, "llenvs_turns": 1.0}
    assert compute_score("legs", "<answer>140</answer>", "", extra(0))["score"] == 0.0
    assert compute_score("legs", "100", "", extra(0))["score"] == 0.0
    with_signals = compute_score("l", "<answer>100</answer>", "", extra(0), signals=["correctness", "none"])
    assert with_signals == {**right, "llenvs/correctness": 1.0, "llenvs/none": 0.0}
    assert (
        asyncio.run(acompute_score("l", "<answer>100</answer>", "", extra(0), reward_router_address="x")) == right
    )
    assert (
        make_verl_reward_fn(make(LEGS[0], **LEGS[1]))("l", "<answer>100</answer>", "", {"task_index": 0}) == right
    )
    again = pickle.loads(pickle.dumps(make_verl_reward_fn()))  # noqa: S301 - our own
    assert again("l", "<answer>100</answer>", "", extra(0)) == right


def test_a_failure_has_the_same_keys_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failing = ("arithmetic/times", {"fails": [1]})
    rows = [extra(i, failing) for i in (1, 2)]
    scores = compute_score_batch(["a"] * 2, ["<answer>4</answer>"] * 2, [""] * 2, rows)
    assert scores == [
        {"score": 0.0, "acc": 0.0, "llenvs_error": 1.0, "llenvs_turns": 0.0},
        {"score": 1.0, "acc": 1.0, "llenvs_error": 0.0, "llenvs_turns": 1.0},
    ]
    assert caplog.text.count("task 1 was not scored: OSError: the sandbox is gone") == 1
    assert compute_score("a", "", "", rows[0], on_error=-1, retries=0)["score"] == -1.0
    with pytest.raises(NotScored, match="task 1"):
        compute_score("a", "", "", rows[0], on_error="raise")
    with pytest.raises(InvalidOption, match="no meaning in veRL"):
        make_verl_reward_fn(on_error="skip")  # type: ignore[arg-type]


def test_what_cannot_be_scored_from_text_is_refused() -> None:
    with pytest.raises(InvalidOption, match="LLEnvsAgentLoop"):
        compute_score("a", "up", "", extra(0, ("arithmetic/climb", {})))
    with pytest.raises(InvalidOption, match="holds more than the model's words"):
        compute_score("a", "<answer>2</answer>", "", {**extra(1, ("arithmetic/times", {})), "num_turns": 4})
    with pytest.raises(InvalidOption, match="llenvs"):
        compute_score("a", "x", "", {})
    broken = json.loads(extra(1, ("arithmetic/times", {}))["llenvs"])
    broken["prompt_sha256"] = "0" * 64
    with pytest.raises(TaskMismatch):
        compute_score("a", "x", "", {"llenvs": json.dumps(broken)})


def test_rows_of_a_data_set(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    path = make_verl_dataset("arithmetic/times", tmp_path / "train.parquet", chunk=3, options={"by": 3})
    rows = parquet.read_table(path).to_pylist()
    assert len(rows) == 20
    assert [file.name for file in tmp_path.iterdir()] == ["train.parquet"]
    assert rows[4] == {
        "data_source": "arithmetic/times",
        "prompt": [{"role": "user", "content": "What is 4 times 3?"}],
        "ability": "arithmetic",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"index": 4, "task_index": 4, **extra(4, ("arithmetic/times", {"by": 3}))},
    }
    assert compute_score("a", "<answer>12</answer>", "", rows[4]["extra_info"])["score"] == 1.0
    pytest.importorskip("datasets", reason="needs datasets")
    asked = make_verl_dataset("arithmetic/times", ground_truth=True, indices=[4], agent_name="mine")
    assert asked[0]["reward_model"]["ground_truth"] == "8"
    assert asked[0]["agent_name"] == "mine"
    assert make_verl_dataset("arithmetic/climb")[0]["agent_name"] == "llenvs"


# -- with veRL --------------------------------------------------------------------------------------------

NEEDS_VERL = "needs veRL: pip install --no-deps verl==0.9.1, with ray tensordict hydra-core torch"


@pytest.fixture(scope="module")
def worker() -> Any:
    """The module with veRL's worker."""
    pytest.importorskip("torch", reason=NEEDS_VERL)
    pytest.importorskip("verl", reason=NEEDS_VERL)
    pytest.importorskip("ray", reason=NEEDS_VERL)
    import verl_worker

    import llenvs.integrations.verl_agent_loop

    assert llenvs.integrations.verl.LLEnvsAgentLoop is llenvs.integrations.verl_agent_loop.LLEnvsAgentLoop
    return verl_worker


@pytest.fixture(scope="module")
def config(worker: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """veRL's configuration."""
    return worker.verl_config(tmp_path_factory.mktemp("verl"))


@pytest.fixture(autouse=True)
def _guess_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from guess import GuessAdapter

    monkeypatch.setitem(environment_registry._registered, "guess", GuessAdapter())


def managed(folder: Path, name: str, rows: list[dict[str, Any]], answers: list[list[int]], **columns: Any) -> Any:
    """What veRL's reward manager makes of responses, with our function named as in its configuration."""
    import numpy as np
    import torch
    import verl_worker
    from tensordict import TensorDict
    from toy_tokenizer import toy_tokenizer
    from verl import DataProto
    from verl.trainer.ppo.reward import load_reward_manager

    config = verl_worker.verl_config(
        folder,
        "reward.custom_reward_function.path=pkg://llenvs.integrations.verl",
        f"reward.custom_reward_function.name={name}",
    )
    manager = load_reward_manager(config, toy_tokenizer())
    length = max(map(len, answers))
    responses = torch.tensor([ids + [264] * (length - len(ids)) for ids in answers])
    attention = torch.tensor([[1] * (1 + len(ids)) + [0] * (length - len(ids)) for ids in answers])
    held = {}
    for column in ("data_source", "reward_model", "extra_info"):
        held[column] = np.empty(len(rows), dtype=object)
        held[column][:] = [row[column] for row in rows]
    held.update({key: np.array(value) for key, value in columns.items()})
    batch = TensorDict(
        {"responses": responses, "attention_mask": attention, "prompts": torch.zeros(len(rows), 1)}, len(rows)
    )
    data = DataProto(batch=batch, non_tensor_batch=held)

    async def run() -> Any:
        manager.loop = asyncio.get_running_loop()
        return [await manager.run_single(data[n : n + 1]) for n in range(len(rows))]

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["compute_score", "acompute_score"])
def test_the_naive_reward_manager(worker: Any, tmp_path: Path, name: str) -> None:
    from toy_tokenizer import toy_tokenizer

    said = ["<answer>100</answer>", "<answer>140</answer>", "100"]
    rows = list(make_verl_dataset(LEGS[0], indices=[0] * 3, options=LEGS[1]))
    ids = [[*toy_tokenizer()(text).input_ids, 266] for text in said]
    results = managed(tmp_path, name, rows, ids, __num_turns__=[2] * 3)
    assert [result["reward_score"] for result in results] == [1.0, 0.0, 0.0]
    assert [r.reward for r in Scorer(LEGS[0], options=LEGS[1]).score_batch([0] * 3, said)] == [1.0, 0.0, 0.0]
    assert results[0]["reward_extra_info"] == {"score": 1.0, "acc": 1.0, "llenvs_error": 0.0, "llenvs_turns": 1.0}


def test_an_answer_that_the_environment_gave_is_not_the_models(worker: Any, tmp_path: Path) -> None:
    """Scored from its text the response would be right: the hint in it is a user's."""
    from toy_tokenizer import toy_tokenizer

    rows = list(make_verl_dataset(LEGS[0], indices=[3], options=LEGS[1]))
    turns = [
        {"role": "assistant", "content": "I guess"},
        {"role": "user", "content": "Hint: <answer>187</answer>"},
        {"role": "assistant", "content": "ok"},
    ]
    text = toy_tokenizer().apply_chat_template(turns, tokenize=False)
    assert Scorer(LEGS[0], options=LEGS[1]).score(3, text).reward == 1.0
    ids = toy_tokenizer()(text).input_ids
    with pytest.raises(InvalidOption, match="several turns are scored in LLEnvsAgentLoop"):
        managed(tmp_path, "compute_score", rows, [ids], __num_turns__=[4])


def test_the_batch_reward_manager(worker: Any) -> None:
    import numpy as np
    import torch
    from tensordict import TensorDict
    from toy_tokenizer import toy_tokenizer
    from verl import DataProto
    from verl.workers.reward_manager.batch import BatchRewardManager

    rows = list(make_verl_dataset("arithmetic/times", indices=[1, 2]))
    ids = [toy_tokenizer()(f"<answer>{n}</answer>").input_ids for n in (2, 5)]
    held = {name: np.array([row[name] for row in rows], dtype=object) for name in ("data_source", "reward_model")}
    held["extra_info"] = np.array([row["extra_info"] for row in rows], dtype=object)
    tensors = {
        "prompts": torch.zeros(2, 1, dtype=torch.long),
        "responses": torch.tensor(ids),
        "attention_mask": torch.ones(2, 1 + len(ids[0]), dtype=torch.long),
    }
    manager = BatchRewardManager(toy_tokenizer(), 0, compute_score_batch)
    made = manager(DataProto(batch=TensorDict(tensors, 2), non_tensor_batch=held), return_dict=True)
    assert made["reward_tensor"].sum(1).tolist() == [1.0, 0.0]
    assert made["reward_extra_info"]["llenvs_error"] == [0.0, 0.0]


def test_rows_through_verls_own_data_set(config: Any, tmp_path: Path) -> None:
    from omegaconf import OmegaConf
    from toy_tokenizer import toy_tokenizer
    from verl.utils.dataset.rl_dataset import RLHFDataset

    path = make_verl_dataset("arithmetic/climb", tmp_path / "train.parquet")
    options = OmegaConf.create(OmegaConf.to_container(config.data, resolve=True))
    options.cache_dir = str(tmp_path / "cache")
    options.filter_overlong_prompts = False
    row = RLHFDataset(data_files=str(path), tokenizer=toy_tokenizer(), config=options)[1]
    assert row["raw_prompt"] == [{"role": "user", "content": "Climb to 3. You are at 0."}]
    assert (row["index"], row["agent_name"]) == (1, "llenvs")
    assert row["extra_info"]["llenvs"] == extra(1, ("arithmetic/climb", {}))["llenvs"]


def masks(batch: Any) -> list[list[int]]:
    """Of each response its mask, as long as the response."""
    found = []
    for number, mask in enumerate(batch.batch["response_mask"]):
        width = batch.batch["prompts"].shape[1]
        length = int(batch.batch["attention_mask"][number][width:].sum())
        found.append(mask[:length].tolist())
    return found


def test_ids_mask_and_reward_of_an_episode(worker: Any, config: Any) -> None:
    """The dossier's episode: "hi", "ok", "no", "16"; and the same with ids that no tokenizer would give."""
    from dataclasses import replace

    from arithmetic import ArithmeticAdapter, Climb

    from llenvs import Observation
    from llenvs.core.environment import Start

    class No(Climb):
        def _start(self, task_index: int, seed: int, options: Any) -> Any:
            return Start(Observation("hi"), {"at": 0, "target": 2})

        def _advance(self, state: Any, action: Any) -> Any:
            advance = super()._advance(state, action)
            return replace(advance, observation=Observation("no"), terminated=action.text == "16")

        def _signals(self, state: Any, action: Any, next_state: Any) -> Any:
            from llenvs import Signal

            yield Signal("reached", reward=next_state.is_terminal)

    class Adapter(ArithmeticAdapter):
        def create(self, name: str, options: Any) -> Any:
            return No(options)

    environment_registry._registered["arithmetic"] = Adapter()
    firsts = iter([[259, 266], [83, 71, 68, 266]])

    def policy(prompt: str) -> Any:
        return next(firsts) if prompt.count("<|im_start|>assistant") == 1 else "16"

    rows = list(make_verl_dataset("arithmetic/climb", indices=[0, 0]))
    from llenvs.integrations import verl_agent_loop

    verl_agent_loop._pool.cache_clear()
    made, server = worker.rolled_out(config, policy, rows, logprobs=True)
    bridge = [198, 265, 84, 82, 68, 81, 198, 77, 78, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198]
    assert server.calls[0]["prompt_ids"] == [
        265, 84, 82, 68, 81, 198, 71, 72, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198,
    ]  # fmt: skip
    assert made.batch["responses"][0][:27].tolist() == [259, 266, *bridge, 260, 266, 264]
    assert made.batch["responses"][1][:28].tolist() == [83, 71, 68, 266, *bridge, 260, 266]
    assert masks(made) == [[1, 1, *[0] * 22, 1, 1], [1, 1, 1, 1, *[0] * 22, 1, 1]]
    assert made.batch["rm_scores"][0].nonzero().tolist() == [[25]]
    assert made.batch["rm_scores"][0][25] == 1.0
    assert made.non_tensor_batch["__num_turns__"].tolist() == [4, 4]
    assert made.batch["rollout_log_probs"][0][:27].tolist() == [-0.5, -0.5, *[0.0] * 22, -0.5, -0.5, 0.0]
    verl_agent_loop._pool.cache_clear()


def test_rewards_are_those_of_the_scorer(worker: Any, config: Any) -> None:
    said = {2: ["up", "up"], 3: ["up", "down", "down", "up", "up", "up"], 4: ["down"] * 6}

    def policy(prompt: str) -> str:
        target = int(prompt.split("Climb to ")[1][0])
        return said[target][prompt.count("<|im_start|>assistant") - 1]

    made, _ = worker.rolled_out(config, policy, list(make_verl_dataset("arithmetic/climb")))
    scorer = Scorer("arithmetic/climb")
    rewards = [scorer.score(index, said[index + 2]).reward for index in range(3)]
    assert made.batch["rm_scores"].sum(1).tolist() == rewards
    assert made.non_tensor_batch["acc"].tolist() == [1.0, 0.0, 0.0]
    assert made.non_tensor_batch["llenvs_turns"].tolist() == [2.0, 6.0, 6.0]
    # veRL takes the keys of the first sample for all, those that a reward function scores among them
    scored = compute_score("a", "x", "", extra(1, ("arithmetic/times", {})))
    assert set(made.meta_info["reward_extra_keys"]) == scored.keys()
    for mask, ids, target in zip(masks(made), made.batch["responses"], (2, 3, 4), strict=True):
        from toy_tokenizer import toy_tokenizer

        sampled = toy_tokenizer().decode([int(t) for t, bit in zip(ids, mask, strict=False) if bit])
        assert sampled == "".join(f"{text}<|im_end|>" for text in said[target])


def test_a_failed_environment_is_masked(worker: Any, config: Any, caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        *make_verl_dataset("guess/number", indices=[0, 1], options={"fails": [0]}),
        *make_verl_dataset("guess/number", indices=[2], options={"fails": [0]}),
    ]
    call = '<tool_call>\n{"name": "guess", "arguments": {"number": %d}}\n</tool_call>'
    answers = {0: call % 3, 1: call % 9}

    def policy(prompt: str) -> str:
        return answers[min(1, prompt.count("<|im_start|>assistant") - 1)]

    made, _ = worker.rolled_out(config, policy, rows)
    assert made.non_tensor_batch["llenvs_error"].tolist() == [1.0, 0.0, 0.0]
    assert made.batch["rm_scores"].sum(1).tolist() == [0.0, 1.0, 1.0]
    assert sum(masks(made)[0]) == 0
    assert masks(made)[1] == [1] * len(masks(made)[1])
    assert "task 0 has no reward: OSError: the secret 7 is lost" in caplog.text


def test_answers_that_are_cut_or_empty(worker: Any, tmp_path: Path) -> None:
    config = worker.verl_config(tmp_path, "actor_rollout_ref.rollout.calculate_log_probs=true")
    script = {2: [[120] * 300], 3: [[]], 4: ["up", [120] * 240, "up"]}

    def policy(prompt: str) -> Any:
        turns = prompt.count("<|im_start|>assistant")
        return script[int(prompt.split("Climb to ")[1][0])][turns - 1]

    made, _ = worker.rolled_out(config, policy, list(make_verl_dataset("arithmetic/climb")), logprobs=True)
    lengths = [len(mask) for mask in masks(made)]
    assert lengths == [256, 1, 256]
    assert [sum(mask) for mask in masks(made)] == [256, 0, 223]
    assert made.non_tensor_batch["llenvs_error"].tolist() == [0.0, 1.0, 0.0]
    assert made.non_tensor_batch["llenvs_turns"].tolist() == [1.0, 0.0, 2.0]


def test_the_loop_from_a_configuration(worker: Any, tmp_path: Path) -> None:
    loops = tmp_path / "agent.yaml"
    loops.write_text(
        "- name: short\n  _target_: llenvs.integrations.verl.LLEnvsAgentLoop\n  max_turns: 2\n"
        "  env: arithmetic/climb\n  signals: [nearer]\n"
    )
    config = worker.verl_config(tmp_path, f"actor_rollout_ref.rollout.agent.agent_loop_config_path={loops}")
    rows = [dict(row) for row in make_verl_dataset("arithmetic/climb", indices=[2], agent_name="short")]
    rows[0]["extra_info"] = {"index": 2, "task_index": 2}  # no identity: the configuration names the environment
    made, server = worker.rolled_out(config, lambda prompt: "up", rows)
    assert len(server.calls) == 2
    assert made.non_tensor_batch["llenvs/nearer"].tolist() == [2.0]
    assert made.batch["rm_scores"].sum() == 2.0


def test_a_single_turn_can_go_through_the_loop_too(worker: Any, config: Any) -> None:
    """There a failed environment is masked, which a reward function cannot do."""
    rows = list(make_verl_dataset("arithmetic/times", indices=[1, 2], agent_name="llenvs", options={"fails": [1]}))
    made, _ = worker.rolled_out(config, lambda prompt: "<answer>4</answer>", rows)
    assert made.batch["rm_scores"].sum(1).tolist() == [0.0, 1.0]
    assert made.non_tensor_batch["llenvs_error"].tolist() == [1.0, 0.0]
    assert [sum(mask) for mask in masks(made)] == [0, len(masks(made)[1])]
    assert made.non_tensor_batch["__num_turns__"].tolist()[1] == 2


def test_a_row_of_another_version_ends_the_batch(worker: Any, config: Any) -> None:
    rows = [dict(row) for row in make_verl_dataset("arithmetic/climb", indices=[0])]
    changed = json.loads(rows[0]["extra_info"]["llenvs"])
    changed["prompt_sha256"] = "0" * 64
    rows[0]["extra_info"] = {"index": 0, "llenvs": json.dumps(changed)}
    with pytest.raises(TaskMismatch, match="another prompt"):
        worker.rolled_out(config, lambda prompt: "up", rows)
