"""veRL's AgentLoopWorker on a CPU, with an engine that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import verl
from hydra import compose, initialize_config_dir
from tensordict import TensorDict
from toy_model import toy_model
from toy_tokenizer import toy_tokenizer
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from llenvs.integrations import verl_agent_loop  # noqa: F401 - as VERL_USE_EXTERNAL_MODULES makes workers do

Policy = Callable[[str], Sequence[int] | str]


class ScriptedServer(LLMServerClient):
    """The engine: `policy` gives text or ids for the text of a prompt."""

    def __init__(self, config: Any, policy: Policy, *, logprobs: bool = False) -> None:
        super().__init__(config)
        self.policy = policy
        self.logprobs = logprobs
        self.calls: list[dict[str, Any]] = []

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **kwargs: Any
    ) -> TokenOutput:
        """What veRL's client gives."""
        self.calls.append({"request_id": request_id, "prompt_ids": list(prompt_ids), **sampling_params})
        tokenizer = toy_tokenizer()
        said = self.policy(tokenizer.decode(prompt_ids))
        ids = [*tokenizer(said).input_ids, 266] if isinstance(said, str) else list(said)
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids) if self.logprobs else None)


def verl_config(folder: Path, *overrides: str) -> Any:
    """veRL's own configuration for a toy model, which is written into `folder`."""
    model = folder / "model"
    if not model.exists():
        toy_model().save_pretrained(model)
        toy_tokenizer().save_pretrained(model)
    trainer_config = str(Path(verl.__file__).parent / "trainer" / "config")
    with initialize_config_dir(config_dir=trainer_config, version_base=None):
        return compose(
            config_name="ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={model}",
                "actor_rollout_ref.rollout.name=vllm",
                "actor_rollout_ref.rollout.prompt_length=256",
                "actor_rollout_ref.rollout.response_length=256",
                "data.max_prompt_length=256",
                "data.max_response_length=256",
                *overrides,
            ],
        )


def rolled_out(config: Any, policy: Policy, rows: Sequence[dict[str, Any]], *, logprobs: bool = False) -> Any:
    """The batch that the worker makes of `rows` (of `make_verl_dataset`), and the engine."""
    import asyncio

    async def run() -> Any:
        server = ScriptedServer(config, policy, logprobs=logprobs)
        worker = AgentLoopWorker(config, server, None, None)
        worker.tokenizer = toy_tokenizer()  # from files it comes back as one that splits digits
        columns: dict[str, Any] = {}
        for name in rows[0]:
            columns["raw_prompt" if name == "prompt" else name] = column = np.empty(len(rows), dtype=object)
            column[:] = [row[name] for row in rows]
        columns["index"] = np.array([row["extra_info"]["index"] for row in rows], dtype=object)
        dummy = TensorDict({"dummy_tensor": torch.zeros(len(rows), 1)}, batch_size=len(rows))
        batch = DataProto(batch=dummy, non_tensor_batch=columns, meta_info={"validate": False})
        return await worker.generate_sequences(batch), server

    return asyncio.run(run())
