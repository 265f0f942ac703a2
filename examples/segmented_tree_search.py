"""Tree search at segment boundaries: the small model proposes lines of arithmetic, search puts them together.

A state is a value, so every line that was written is a place to go on from in another way. The model's own samples
are the proposals; the process reward of `segmented_process_reward` and the task's reward say how good they are.
What a search finds can teach a model; it is no measure of the model, since it looks at the task's reward.
Run it with::

    python examples/segmented_tree_search.py
"""

from __future__ import annotations

from segmented_process_reward import PROMPT, make_environment, sums

from llenvs.core.search import Budget, beam_search, mcts
from llenvs.evaluation import SegmentedTrajectoryRunner, SegmentProposer
from llenvs.inference import SamplingParams


def main() -> None:
    """One attempt and two searches on each of a few tasks."""
    from llenvs.inference.backends import LlamaCppBackend

    sampling = SamplingParams(temperature=0.8, max_tokens=64)
    right: dict[str, int] = {}
    with make_environment() as env, LlamaCppBackend() as backend:
        runner = SegmentedTrajectoryRunner(env, backend, sampling_params=sampling, prompt=PROMPT)
        propose = SegmentProposer(env, backend, count=3, sampling_params=sampling, prompt=PROMPT, chunk_tokens=12)
        for task_index in sums(env, 4):
            state, _ = env.reset(options={"task_index": task_index})
            print(f"\n{state.observation.prompt} {env.ground_truth(state)}")
            attempt = runner.run_trajectory(task_index).trajectory
            assert attempt is not None
            beam = beam_search(env, state, propose, width=2, max_depth=5)
            tree = mcts(env, state, propose, budget=Budget(steps=15), max_depth=5)
            for name, trajectory in (("attempt", attempt), ("beam", beam.trajectory), ("tree", tree.trajectory)):
                success = any(env.spec.is_success(t.rewards) for t in trajectory)
                right[name] = right.get(name, 0) + success
                lines = " | ".join(action.text.strip() for action in trajectory.actions) or "(none is worth it)"
                print(f"  {name:8} {'right' if success else 'wrong'} {trajectory.total_reward:5.1f}  {lines}")
    print(f"\nright of 4: {right}; {propose.usage.completion_tokens} tokens proposed")


if __name__ == "__main__":
    main()
