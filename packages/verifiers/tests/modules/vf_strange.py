"""Modules that are refused, fail, or are loud."""

import logging
import os

import verifiers as vf
from datasets import Dataset

ROWS = [{"question": "Say yes.", "answer": "yes"}]


class OwnLoop(vf.Environment):
    async def rollout(self, input, client, model, sampling_args=None):
        raise NotImplementedError


class SandboxEnv(vf.SingleTurnEnv):
    __module__ = "verifiers.legacy.envs.sandbox_env"


class Asks(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **kwargs):
        await self.get_model_response(state, messages)
        return []


class Breaks(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **kwargs):
        if messages[-1]["content"] == "infra":
            raise vf.InfraError("the box is gone")
        if messages[-1]["content"] == "invalid":
            raise vf.InvalidModelResponseError("no such move")
        raise KeyError("board")


def yes(completion):
    return float(completion[-1]["content"] == "yes")


def total(completion):
    return 0.25


class OwnScoring(vf.Rubric):
    """Computes its reward in its own way."""

    async def score_group(self, states):
        for state in states:
            state["reward"], state["metrics"] = 0.75, {"style": 0.5}


def load_environment(kind: str, needed: str = "x"):
    dataset = Dataset.from_list(ROWS)
    if kind == "own_loop":
        return OwnLoop(dataset=dataset)
    if kind == "cloud":
        return SandboxEnv(dataset=dataset)
    if kind == "asks":
        return Asks(dataset=dataset, rubric=vf.Rubric([yes]), max_turns=3)
    if kind == "breaks":
        return Breaks(dataset=dataset, rubric=vf.Rubric([yes]), max_turns=3)
    if kind == "raises":
        raise LookupError("no data here")
    if kind == "none":
        return None
    if kind == "keys":
        vf.ensure_keys(["SOME_KEY_OF_MINE"])
    if kind == "own_scoring":
        return vf.SingleTurnEnv(dataset=dataset, rubric=OwnScoring([yes]))
    if kind == "names":
        total.__name__ = "total_reward"
        group = vf.RubricGroup([vf.Rubric([yes, total, yes], [1.0, 2.0, 0.5]), vf.Rubric([yes], [0.1])])
        return vf.SingleTurnEnv(dataset=dataset, rubric=group)
    if kind == "loud":
        print("loading ...")  # noqa: T201
        logging.basicConfig(level=logging.DEBUG, force=True)
        os.environ["VF_STRANGE_LOADED"] = "1"
    if kind == "builder":
        return vf.SingleTurnEnv(dataset=lambda: dataset, eval_dataset=lambda: dataset, rubric=vf.Rubric([yes]))
    return vf.SingleTurnEnv(dataset=dataset, rubric=vf.Rubric([yes]))
