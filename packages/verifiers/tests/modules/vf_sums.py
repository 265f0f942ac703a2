"""A single-turn module: sums, with a format that the parser wants."""

import verifiers as vf
from datasets import Dataset


def load_environment(num_tasks: int = 24, failing: bool = False, group: bool = False, failing_weight: float = 1.0):
    rows = [{"question": f"What is {i}+{i}?", "answer": str(2 * i)} for i in range(num_tasks)]
    parser = vf.XMLParser(["think", "answer"], answer_field="answer")

    def exact(completion, answer, parser):
        return 1.0 if parser.parse_answer(completion) == answer else 0.0

    def length_pen(completion):
        return min(len(completion[-1]["content"]), 100) / 100

    async def broken(completion):
        raise LookupError("no such table")

    def shorter(completions) -> list[float]:
        lengths = [len(completion[-1]["content"]) for completion in completions]
        return [0.0 if len(lengths) == 1 else float(length == min(lengths)) for length in lengths]

    rubric = vf.Rubric([exact, length_pen, parser.get_format_reward_func()], [2.0, -0.5, 0.2], parser)
    if failing:
        rubric.add_reward_func(broken, failing_weight)
    if group:
        rubric.add_reward_func(shorter, 0.5)
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows), system_prompt="Be short.", parser=parser, rubric=rubric
    )
