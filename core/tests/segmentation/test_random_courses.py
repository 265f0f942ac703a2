"""Rollouts with random models, segmenters, environments and decisions: what is counted and kept always adds up."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from llenvs.core import (
    CompositeSegmenter,
    CustomSegmenter,
    LineSegmenter,
    ParagraphSegmenter,
    SegmentedEnvironment,
    SentenceSegmenter,
    ToolCall,
    Trajectory,
    Usage,
)
from llenvs.evaluation import (
    Branch,
    Feedback,
    Finish,
    ForceNext,
    SegmentedRollout,
    SegmentedTrajectoryRunner,
    SegmentStep,
    Stop,
)
from llenvs.evaluation.segmented_episode import CONTINUE
from llenvs.inference import GenerationRequest, SamplingParams

WORDS = [
    "First, count. ", " There are two. ", "<answer>1</answer>", "\n", "1. x\n", "$a. B$ ", "No", "e.g. ", "数学。",
    "😀 ", "`a. b` ", "Wait... ", " 3 ", "\n\n",
]  # fmt: skip
SEGMENTERS = [
    SentenceSegmenter(),
    LineSegmenter(),
    ParagraphSegmenter(),
    CustomSegmenter(r"[.。]"),
    CompositeSegmenter(LineSegmenter(), SentenceSegmenter()),
]


def random_model(seed: int) -> Callable[[GenerationRequest], tuple[str, tuple[ToolCall, ...]]]:
    """Says something else for each chat and each seed of a request; calls tools where it has some."""

    def says(request: GenerationRequest) -> tuple[str, tuple[ToolCall, ...]]:
        rng = random.Random(f"{seed} {request.sampling.seed} {len(request.messages)}")
        text = "".join(rng.choice(WORDS) for _ in range(rng.randint(0, 9)))
        if request.messages[-1].content == CONTINUE and rng.random() < 0.5:
            text = request.messages[-2].content + text
        calls = (ToolCall("dial", {"number": rng.randint(1, 5)}),) if request.tools and rng.random() < 0.4 else ()
        return request.prefix + text, calls

    return says


def random_decision(seed: int) -> Callable[[SegmentStep], Any]:
    def decide(step: SegmentStep) -> Any:
        rng = random.Random(f"{seed} {step.branch} {len(step.trajectory)}")
        if len(step.trajectory) > 40:
            return Stop()
        forced = ForceNext(rng.choice([" No.", " x\n", "y"]), rng.random() < 0.2)
        branch = None if step.branch else Branch(2)
        decisions = [Feedback("Hm?"), forced, Finish(), Stop(rng.random() < 0.5), branch]
        return rng.choice(decisions) if rng.random() < 0.5 else None

    return decide


def check(rollout: SegmentedRollout, env: SegmentedEnvironment, text_of: Callable[[Any], str], given: int) -> None:
    """`given`: how many steps a branch began with."""
    assert rollout.error is None
    trajectory = rollout.trajectory
    assert trajectory is not None
    paid = sum((generation.usage for generation in rollout.generations), Usage())
    parts = [t.generation for t in trajectory.transitions[given:] if t.generation is not None]
    assert rollout.discarded_tokens >= 0
    assert sum(g.usage.completion_tokens for g in parts) + rollout.discarded_tokens == paid.completion_tokens
    assert sum(g.usage.prompt_tokens for g in parts) <= paid.prompt_tokens
    assert rollout.usage == paid + sum((branch.usage for branch in rollout.branches), Usage())
    assert all(t.action.text.endswith(t.generation.text) for t in trajectory if t.generation is not None)
    base = env.base_trajectory(trajectory)
    state = base.initial_state
    for transition in base:
        alone = env.base_env.step(state, transition.action)
        assert (alone.rewards, alone.next_state) == (transition.rewards, transition.next_state)
        state = alone.next_state
        whole = transition.generation
        if whole is not None and whole.completion_token_ids is not None:
            assert text_of(whole.completion_token_ids) == transition.action.text
    assert Trajectory.from_json(trajectory.to_json()) == trajectory
    assert env.replay(trajectory.initial_state, trajectory).trajectory.states == trajectory.states
    for branch in rollout.branches:
        assert isinstance(branch, SegmentedRollout)
        assert branch.trajectory is not None
        common = zip(branch.trajectory, trajectory, strict=False)
        check(branch, env, text_of, next((i for i, (a, b) in enumerate(common) if a is not b), len(trajectory)))


@pytest.mark.parametrize("seed", range(40))
def test_it_adds_up(addition: Any, guessing: Any, locked: Any, reciter: Any, seed: int) -> None:
    rng = random.Random(seed)
    base = rng.choice([addition, guessing, locked, lambda: locked(record_chat=True)])()
    env = SegmentedEnvironment(base, rng.choice(SEGMENTERS), max_segments=rng.choice([1, 2, 50]))
    backend = reciter(
        random_model(seed), prefix=rng.random() < 0.6, token_ids=rng.random() < 0.7, merges=rng.random() < 0.3
    )
    runner = SegmentedTrajectoryRunner(
        env,
        backend,
        step_callback=random_decision(seed),
        chunk_tokens=rng.choice([None, 1, 2, 5]),
        max_branches=1000,
        max_steps=4,
        seed=seed,
        sampling_params=SamplingParams(max_tokens=rng.choice([None, 3, 10, 60])),
    )
    for task_index in range(5):
        check(runner.run_trajectory(task_index), env, backend.text_of, 0)
