"""A module with a judge, and one with the upstream's mathematics rubric."""

import verifiers as vf
from datasets import Dataset


def load_environment(kind: str = "judge", broken: bool = False):
    rows = [{"question": f"What is {i}+{i}?", "answer": str(2 * i)} for i in range(4)]
    if kind == "math_verify":
        from math_verify import parse, verify

        def equal(completion, answer):
            return float(verify(parse(answer), parse(completion[-1]["content"])))

        rubric = vf.Rubric([equal])
    elif kind == "math":
        rubric = vf.MathRubric()
    else:
        rubric = vf.JudgeRubric(judge_model="judge-1", judge_sampling_args={"temperature": 0.0, "max_tokens": 5})

        async def says_yes(prompt, completion, answer, state, judge):
            return float("yes" in (await judge(prompt, completion, answer, state)).lower())

        rubric.add_reward_func(says_yes)
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)
