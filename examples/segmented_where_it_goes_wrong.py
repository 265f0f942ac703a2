"""Where a reasoning trace goes wrong: the chance of success after each of its segments.

From every boundary of a response the model writes the rest anew several times. The share of these rollouts that
succeed estimates how good the response still was there (the soft estimation of Math-Shepherd, arXiv:2312.08935);
the segment over which it falls most is where the trace went wrong. Rollouts run beside each other in several slots
of llama.cpp, so two runs may differ in some of them (not with ``slots=1``). Run it with::

    python examples/segmented_where_it_goes_wrong.py
"""

from __future__ import annotations

import asyncio
from itertools import pairwise

from segmented_process_reward import PROMPT, make_environment, sums

from llenvs import Trajectory
from llenvs.evaluation import SegmentedTrajectoryRunner
from llenvs.inference import SamplingParams

ROLLOUTS = 8


async def chance(runner: SegmentedTrajectoryRunner, task_index: int, beginning: Trajectory) -> float:
    """Share of rollouts from the end of `beginning` that succeed."""
    rollouts = await asyncio.gather(
        *(runner.arun_trajectory(task_index, repeat=i + 1, start=beginning) for i in range(ROLLOUTS))
    )
    return sum(rollout.success is True for rollout in rollouts) / ROLLOUTS


async def study(runner: SegmentedTrajectoryRunner, task_index: int) -> None:
    """Print a response with the chance of success before and after each segment."""
    response = (await runner.arun_trajectory(task_index)).trajectory
    assert response is not None
    # a whole response needs no rollouts: it succeeded or it did not
    chances = [await chance(runner, task_index, response.branch(step)) for step in range(len(response))]
    chances.append(float(any(runner.environment.spec.is_success(t.rewards) for t in response)))
    falls = [before - after for before, after in pairwise(chances)]
    worst = falls.index(max(falls))
    print(f"\n{response.initial_state.observation.prompt}   {chances[0]:.0%}")
    for number, transition in enumerate(response):
        mark = "  <- here" if number == worst and max(falls) > 0 else ""
        reward = transition.rewards["wrong_equations"].reward
        print(f"  {chances[number + 1]:4.0%}  process reward {reward:4}  {transition.action.text.strip()}{mark}")


async def main() -> None:
    """The responses to a few tasks."""
    from llenvs.inference.backends import LlamaCppBackend

    with make_environment() as env:
        async with LlamaCppBackend() as backend:
            sampling = SamplingParams(temperature=0.7, max_tokens=64)
            runner = SegmentedTrajectoryRunner(env, backend, sampling_params=sampling, prompt=PROMPT, seed=1)
            for task_index in sums(env, 4):
                await study(runner, task_index)


if __name__ == "__main__":
    asyncio.run(main())
