"""A process reward: every line of a model's arithmetic is judged, and a callback acts on it.

The task is ReasoningGym's chain_sum, the model the small one that is inside a package. The reward model is a plain
function, which works out the equations of a line; one that calls a network goes in its place. Run it with::

    python examples/segmented_process_reward.py
"""

from __future__ import annotations

import re
from typing import Any

import llenvs
from llenvs import Action, State
from llenvs.core import LineSegmenter, SegmentedEnvironment
from llenvs.evaluation import ForceNext, SegmentedRollout, SegmentedTrajectoryRunner, SegmentStep
from llenvs.inference import SamplingParams

EQUATION = re.compile(r"\b(\d+(?: \+ \d+)+) = (\d+)\b")

QUESTION = "State the final answer to the following arithmetic problem: "
PROMPT = {
    "few_shot": {
        "examples": [
            {"question": f"{QUESTION}4 + 3 + 5 =", "answer": "4 + 3 = 7\n7 + 5 = 12\n<answer>12</answer>"},
            {
                "question": f"{QUESTION}9 + 2 + 6 + 4 =",
                "answer": "9 + 2 = 11\n11 + 6 = 17\n17 + 4 = 21\n<answer>21</answer>",
            },
            {"question": f"{QUESTION}8 + 1 + 5 =", "answer": "8 + 1 = 9\n9 + 5 = 14\n<answer>14</answer>"},
        ]
    }
}


def wrong_equations(state: State[Any], action: Action, next_state: State[Any]) -> tuple[float, str]:
    """-1.0 for a line with a wrong equation, else 0.0; the feedback is the line as it should be."""
    corrected = EQUATION.sub(lambda found: f"{found[1]} = {sum(map(int, found[1].split(' + ')))}", action.text)
    return 0.0 if corrected == action.text else -1.0, corrected


def make_environment() -> SegmentedEnvironment:
    """Sums and differences of small numbers, answered line by line."""
    tasks = llenvs.make("reasoning_gym/chain_sum", size=60, seed=0, min_terms=3, max_terms=4, max_digits=1)
    return SegmentedEnvironment(tasks, LineSegmenter(), reward_functions=[wrong_equations])


def sums(env: SegmentedEnvironment, count: int) -> list[int]:
    """The first `count` tasks that are sums alone, which the small model can do now and then."""
    prompts = (env.reset(options={"task_index": i})[0].observation.prompt for i in range(len(env)))
    return [i for i, prompt in enumerate(prompts) if "-" not in prompt][:count]


def correct(step: SegmentStep) -> ForceNext | None:
    """Where a line is wrong, say so and give the right one; then let the model go on."""
    judged = step.result.rewards["wrong_equations"]
    if judged.reward == 0.0 or step.ends_response:
        return None
    return ForceNext(f"Wait, {judged.feedback}")


def show(title: str, rollouts: list[SegmentedRollout]) -> None:
    """Print each segment with its process reward, and what it took."""
    print(f"\n{title}: {sum(rollout.success is True for rollout in rollouts)} of {len(rollouts)} right")
    for rollout in rollouts[:3]:
        assert rollout.trajectory is not None, rollout.error
        print(rollout.trajectory.initial_state.observation.prompt)
        for transition in rollout.trajectory:
            print(f"  {transition.rewards['wrong_equations'].reward:4}  {transition.action.text.strip()}")
    usage = sum(rollout.usage.completion_tokens for rollout in rollouts)
    print(f"{usage} tokens, {sum(r.discarded_tokens for r in rollouts)} of them thrown away")


def main() -> None:
    """The same tasks without and with the callback."""
    from llenvs.inference.backends import LlamaCppBackend

    with make_environment() as env, LlamaCppBackend() as backend:
        runner = SegmentedTrajectoryRunner(
            env, backend, sampling_params=SamplingParams(temperature=0.0, max_tokens=64), prompt=PROMPT
        )
        tasks = sums(env, 8)
        show("alone", runner.run_batch(tasks))
        show("corrected", runner.run_batch(tasks, step_callback=correct))


if __name__ == "__main__":
    main()
