"""OpenRLHF: reward files, agent files and data sets, through its own classes."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llenvs import DatasetProvider, Scorer, environment_registry
from llenvs.core.errors import InvalidOption
from llenvs.integrations import TaskMismatch
from llenvs.integrations.control_text import without_end
from llenvs.integrations.openrlhf import make_openrlhf_dataset, make_openrlhf_reward_fn
from llenvs.integrations.row_scoring import NotScored

torch = pytest.importorskip("torch", reason="needs torch: OpenRLHF takes tensors")

LEGS = ("reasoning_gym/leg_counting", {"size": 100, "seed": 42})
NEEDS = "needs OpenRLHF: pip install --no-deps openrlhf==0.11.2, with aiohttp pylatexenc sympy"


def label(task_index: int, address: str, **options: Any) -> str:
    return DatasetProvider(address, options=options)[task_index].task_id


# -- rewards ----------------------------------------------------------------------------------------------


def test_the_module_does_not_import_openrlhf() -> None:
    code = "import sys, llenvs.integrations.openrlhf; assert not {'openrlhf', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rewards_are_tensors() -> None:
    reward = make_openrlhf_reward_fn()
    identity = label(3, "arithmetic/times", by=3)
    for function in (reward, pickle.loads(pickle.dumps(reward))):  # noqa: S301 - our own
        made = function(["P<answer>9</answer><|im_end|>\n"], ["P"], [identity])
        assert made["rewards"].shape == made["scores"].shape == (1,)
        assert made["rewards"].tolist() == [1.0]
        assert {name: each.tolist() for name, each in made["extra_logs"].items()} == {
            "llenvs_correct": [1.0],
            "llenvs_error": [0.0],
        }
    many = reward(["P<answer>9</answer>", "P9"], ["P"] * 2, [identity] * 2)
    assert many["rewards"].tolist() == [1.0, 0.0]
    with_env = make_openrlhf_reward_fn("arithmetic/times")
    assert with_env(["<answer>8</answer>"], [""], ["4"])["rewards"].tolist() == [1.0]


def test_what_fails_is_raised_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """OpenRLHF swallows the exception: the log is where a person sees it."""
    failing = label(1, "arithmetic/times", fails=[1])
    with pytest.raises(NotScored):
        make_openrlhf_reward_fn()(["x"], [""], [failing])
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "arithmetic/times: task 1 was not scored: OSError: the sandbox is gone" in caplog.text
    assert make_openrlhf_reward_fn(on_error=-1.0)(["x"], [""], [failing])["rewards"].tolist() == [-1.0]
    assert make_openrlhf_reward_fn(on_error=-1.0)(["x"], [""], [failing])["extra_logs"]["llenvs_error"] == 1.0
    caplog.clear()
    changed = json.loads(label(1, "arithmetic/times"))
    changed["prompt_sha256"] = "0" * 64
    with pytest.raises(TaskMismatch):
        make_openrlhf_reward_fn()(["x"], [""], [json.dumps(changed)])
    assert "another prompt" in caplog.text
    with pytest.raises(InvalidOption, match="make_openrlhf_agent_executor"):
        make_openrlhf_reward_fn("arithmetic/climb")
    with pytest.raises(InvalidOption, match="does not begin with its prompt"):
        make_openrlhf_reward_fn()(["Q and A"], ["P"], [label(1, "arithmetic/times")])
    with pytest.raises(InvalidOption, match="no meaning"):
        make_openrlhf_reward_fn(on_error="skip")


def test_ends_of_turns_are_no_answer() -> None:
    assert without_end("<answer>1</answer><|im_end|>\n") == "<answer>1</answer>"
    assert without_end("a </s> <|endoftext|>") == "a "  # what was sampled before the end stays
    assert without_end("a\n<|end|>") == "a\n"
    assert without_end("<|im_end|>") == ""
    assert without_end("", ["", "x"]) == ""
    assert without_end("a <|im_end|> b") == "a <|im_end|> b"
    assert without_end("a\n") == "a\n"  # only what follows an end of turn is cut


# -- with OpenRLHF ----------------------------------------------------------------------------------------


@pytest.fixture
def agents() -> Any:
    """OpenRLHF's classes."""
    return pytest.importorskip("openrlhf.utils.agent", reason=NEEDS)


@pytest.fixture(autouse=True)
def _guess_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from guess import GuessAdapter

    monkeypatch.setitem(environment_registry._registered, "guess", GuessAdapter())


@dataclass
class Engine:
    """In the place of vLLM: says what `policy` tells to the text of a prompt."""

    policy: Callable[[str], str | Sequence[int]]
    prompts: list[list[int]] = field(default_factory=list)

    async def generate(self, prompt_ids: list[int], params: Any, multi_modal_data: Any = None) -> Any:
        """What vLLM's request output holds."""
        from toy_tokenizer import toy_tokenizer

        tokenizer = toy_tokenizer()
        self.prompts.append(list(prompt_ids))
        said = self.policy(tokenizer.decode(prompt_ids))
        ids = [*tokenizer(said).input_ids, 266] if isinstance(said, str) else list(said)
        ids = ids[: params.max_tokens]
        reason = "stop" if ids[-1] == 266 else "length"
        logprobs = None if params.logprobs is None else [{token: SimpleNamespace(logprob=-0.5)} for token in ids]
        output = SimpleNamespace(
            token_ids=ids, text=tokenizer.decode(ids), finish_reason=reason, logprobs=logprobs
        )
        return SimpleNamespace(outputs=[output])


def executed(executor: Any, row: Any, policy: Any, max_length: int = 1000, tokenizer: Any = None) -> Any:
    """What the executor makes of a row of the data set, prompts rendered as OpenRLHF does."""
    from toy_tokenizer import toy_tokenizer

    tokenizer = tokenizer or toy_tokenizer()
    prompt = tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True)
    params = SimpleNamespace(max_tokens=None, logprobs=1)
    engine = Engine(policy)
    made = asyncio.run(executor.execute(prompt, row["label"], params, max_length, tokenizer, engine))
    return made, engine


def test_the_reward_file(agents: Any, tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym", reason="needs llenvs-reasoning-gym")
    file = tmp_path / "reward.py"
    file.write_text(
        "from llenvs.integrations.openrlhf import make_openrlhf_reward_fn\n"
        "reward_func = make_openrlhf_reward_fn()\n"
    )
    executor = agents.SingleTurnAgentExecutor(str(file))
    row = {"prompt": [{"role": "user", "content": "hi"}], "label": label(0, LEGS[0], **LEGS[1])}
    made, _ = executed(executor, row, lambda prompt: "<answer>100</answer>")
    assert made["reward"].tolist() == made["scores"].tolist() == [1.0]
    assert made["action_ranges"] == [(21, 41)]
    assert made["extra_logs"]["llenvs_correct"].tolist() == [1.0]
    made, _ = executed(executor, row, lambda prompt: "<answer>140</answer>")
    assert made["reward"].tolist() == [0.0]


def test_rows_through_openrlhfs_own_data_set(agents: Any, tmp_path: Path) -> None:
    prompts = pytest.importorskip("openrlhf.datasets.prompts_dataset", reason=NEEDS)
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    from toy_tokenizer import toy_tokenizer

    data = SimpleNamespace(input_key="prompt", label_key="label", apply_chat_template=True, image_key="images")
    strategy = SimpleNamespace(args=SimpleNamespace(data=data), is_rank_0=lambda: False)
    for name, kind in (("train.jsonl", "json"), ("train.parquet", "parquet")):
        path = make_openrlhf_dataset("arithmetic/times", tmp_path / name, options={"by": 3}, chunk=3)
        loaded = datasets.load_dataset(
            kind, data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
        )
        source, prompt, identity, images = prompts.PromptDataset(loaded, toy_tokenizer(), strategy)[4]
        assert (source, images) == ("arithmetic/times", None)
        assert prompt == "<|im_start|>user\nWhat is 4 times 3?<|im_end|>\n<|im_start|>assistant\n"
        assert identity == label(4, "arithmetic/times", by=3)
        assert make_openrlhf_reward_fn()([prompt + "<answer>12</answer>"], [prompt], [identity])["rewards"] == 1.0
    assert make_openrlhf_dataset("arithmetic/times")[4]["label"] == label(4, "arithmetic/times")
    with pytest.raises(InvalidOption, match=r"\*\.jsonl"):
        make_openrlhf_dataset("arithmetic/times", tmp_path / "train.csv")


def executor_from_file(agents: Any, folder: Path, arguments: str = "") -> Any:
    """As OpenRLHF loads ``--train.agent_func_path``."""
    import importlib.util

    file = folder / "agent.py"
    file.write_text(
        textwrap.dedent(f"""
        from llenvs.integrations.openrlhf import make_openrlhf_agent_executor
        AgentExecutor = make_openrlhf_agent_executor({arguments})
        """)
    )
    spec = importlib.util.spec_from_file_location("agent_module", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.AgentExecutor, agents.AgentExecutorBase)
    return module.AgentExecutor()


def test_ids_and_ranges_of_an_episode(agents: Any, tmp_path: Path) -> None:
    """The dossier's episode: "hi", "ok", "no", "16"."""
    from dataclasses import replace

    from arithmetic import ArithmeticAdapter, Climb

    from llenvs import Observation, Signal
    from llenvs.core.environment import Start

    class No(Climb):
        def _start(self, task_index: int, seed: int, options: Any) -> Any:
            return Start(Observation("hi"), {"at": 0, "target": 2})

        def _advance(self, state: Any, action: Any) -> Any:
            advance = super()._advance(state, action)
            return replace(advance, observation=Observation("no"), terminated=action.text == "16")

        def _signals(self, state: Any, action: Any, next_state: Any) -> Any:
            yield Signal("reached", reward=next_state.is_terminal)

    class Adapter(ArithmeticAdapter):
        def create(self, name: str, options: Any) -> Any:
            return No(options)

    environment_registry._registered["arithmetic"] = Adapter()
    row = make_openrlhf_dataset("arithmetic/climb", indices=[0])[0]
    executor = executor_from_file(agents, tmp_path)
    turns = iter(["ok", "16"])
    made, engine = executed(executor, row, lambda prompt: next(turns))
    prompt = [265, 84, 82, 68, 81, 198, 71, 72, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198]
    bridge = [198, 265, 84, 82, 68, 81, 198, 77, 78, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198]
    assert engine.prompts == [prompt, [*prompt, 259, 266, *bridge]]
    assert made["observation_tokens"] == [*prompt, 259, 266, *bridge, 260, 266]
    assert made["action_ranges"] == [(21, 23), (45, 47)]
    assert made["reward"] == 1.0
    assert made["rollout_log_probs"] == [*[0.0] * 21, -0.5, -0.5, *[0.0] * 22, -0.5, -0.5]


def test_rewards_are_those_of_the_scorer(agents: Any, tmp_path: Path) -> None:
    said = {2: ["up", "up"], 3: ["up", "down", "down", "up", "up", "up"], 4: ["down"] * 6}
    executor = executor_from_file(agents, tmp_path)
    scorer = Scorer("arithmetic/climb")
    for row, (target, actions) in zip(make_openrlhf_dataset("arithmetic/climb"), said.items(), strict=True):
        turns = iter(actions)
        made, _ = executed(executor, row, lambda prompt, turns=turns: next(turns))
        result = scorer.score(target - 2, actions)
        assert (made["reward"], float(made["scores"])) == (result.reward, result.reward)
        assert made["extra_logs"]["llenvs_correct"] == float(bool(result.correct))
        from toy_tokenizer import toy_tokenizer

        ids = made["observation_tokens"]
        sampled = [toy_tokenizer().decode(ids[start:end]) for start, end in made["action_ranges"]]
        assert sampled == [f"{text}<|im_end|>" for text in actions]
        assert made["action_ranges"][-1][1] == len(ids)  # nothing after the last answer


def test_tools_failures_and_limits(agents: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("trl", reason="takes the chat template of a model family from TRL")
    from toy_tokenizer import toy_tokenizer
    from trl.chat_template_utils import get_training_chat_template, qwen3_chat_template

    qwen3 = toy_tokenizer(get_training_chat_template(toy_tokenizer(qwen3_chat_template)))
    call = '<tool_call>\n{"name": "guess", "arguments": {"number": %d}}\n</tool_call>'
    rows = make_openrlhf_dataset("guess/number", options={"fails": [1]})
    executor = executor_from_file(agents, tmp_path)
    turns = iter([call % 3, call % 7])
    made, engine = executed(executor, rows[0], lambda prompt: next(turns), tokenizer=qwen3)
    assert made["reward"] == 1.0
    shown = toy_tokenizer().decode(engine.prompts[1])
    assert shown.endswith(
        "<|im_end|>\n<|im_start|>user\n<tool_response>\nhigher\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    with pytest.raises(NotScored, match="task 1"):
        executed(executor, rows[1], lambda prompt: call % 1, tokenizer=qwen3)
    assert "guess/number: task 1 has no reward: OSError: the secret 7 is lost" in caplog.text
    counted = executor_from_file(agents, tmp_path, "on_error=0.0, max_turns=2")
    made, _ = executed(counted, rows[1], lambda prompt: call % 1, tokenizer=qwen3)
    assert (made["reward"], made["extra_logs"]["llenvs_error"]) == (0.0, 1.0)

    climb = make_openrlhf_dataset("arithmetic/climb")
    made, _ = executed(counted, climb[2], lambda prompt: "up")
    assert (len(made["action_ranges"]), made["reward"]) == (2, 2.0)
    made, _ = executed(executor, climb[2], lambda prompt: [120] * 30)  # cut: no end of turn
    assert (len(made["action_ranges"]), made["extra_logs"]["llenvs_turns"]) == (1, 1.0)
    start = len(made["observation_tokens"]) - 30
    made, _ = executed(executor, climb[2], lambda prompt: "up", max_length=start + 20)
    assert made["action_ranges"] == [(start, start + 3)]  # no room for an answer to the observation
    assert len(made["observation_tokens"]) == start + 3
