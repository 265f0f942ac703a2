"""Evaluate the embedded model in Python: two attempts at each task, pass@k and intervals."""

import llenvs
from llenvs.evaluation import run_evaluation
from llenvs.inference import SamplingParams
from llenvs.inference.backends import LlamaCppBackend

env = llenvs.make(
    "reasoning_gym/chain_sum", size=6, max_terms=2, max_digits=1, answer_extractor=["tag_based", "numeric"]
)
with LlamaCppBackend() as backend:
    result = run_evaluation(
        env,
        backend,
        repeats=2,
        sampling_params=SamplingParams(temperature=0.7, max_tokens=96),
        prompt={"system_prompt": "general_reasoning", "few_shot": "answer_tags"},
        log=(),
    )
print("success", result.success_rate, result.success_interval)
print("reward ", result.mean_reward, result.reward_interval)
print("pass@k ", result.pass_at_k)
