"""With the real small model: its own tokens, the examples' parts, other processes."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from llenvs.core import Action, SegmentedEnvironment, SentenceSegmenter, State, TokenSegmenter, make
from llenvs.core.search import beam_search
from llenvs.core.segmentation import final_segment, user_feedback
from llenvs.evaluation import (
    Branch,
    ForceNext,
    SegmentedTrajectoryRunner,
    SegmentProposer,
    SegmentStep,
    TrajectoryRunner,
)
from llenvs.inference import SamplingParams
from llenvs.inference.local.model_file import DEFAULT_MODEL, cached, installed
from llenvs.testing import check_walk

pytest.importorskip("llenvs_reasoning_gym", reason="needs the adapter reasoning_gym")

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not beside the tests")
    spec = importlib.util.spec_from_file_location(
        "segmented_process_reward", EXAMPLES / "segmented_process_reward.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    llamacpp = pytest.importorskip("llenvs_llamacpp", reason="needs the backend llamacpp")
    if installed(DEFAULT_MODEL) is None and cached(DEFAULT_MODEL) is None:
        pytest.skip("the small model is not on this machine")
    with llamacpp.LlamaCppBackend(n_ctx=1024) as made:
        yield made


@pytest.fixture(scope="module")
def env(example: ModuleType) -> SegmentedEnvironment:
    made: SegmentedEnvironment = example.make_environment()
    return made


SAMPLING = SamplingParams(temperature=0.7, max_tokens=48)


def test_the_models_own_tokens_spell_the_segments(env: SegmentedEnvironment, backend: Any, example: Any) -> None:
    (task,) = example.sums(env, 1)
    options: dict[str, Any] = {"sampling_params": SAMPLING, "prompt": example.PROMPT, "seed": 4}
    plain = TrajectoryRunner(env.base_env, backend, **options)
    plain.run_trajectory(task)  # llama.cpp computes a prompt that it has cached with other rounding
    alone = plain.run_trajectory(task).trajectory
    rollout = SegmentedTrajectoryRunner(env, backend, **options).run_trajectory(task)
    assert alone is not None
    assert rollout.trajectory is not None
    said = alone.transitions[0].generation
    assert said is not None
    assert rollout.generations[0].completion_token_ids == said.completion_token_ids
    assert env.base_trajectory(rollout.trajectory).actions == alone.actions
    for transition in rollout.trajectory:
        generation = transition.generation
        assert generation is not None
        ids = generation.completion_token_ids or ()
        assert backend.detokenize(ids).removesuffix("<|im_end|>") == transition.action.text
        assert generation.usage.completion_tokens == len(ids) == len(generation.logprobs or ())
    assert rollout.usage.completion_tokens == len(said.completion_token_ids or ())


def test_a_response_in_chunks_with_branches(env: SegmentedEnvironment, backend: Any, example: Any) -> None:
    (task,) = example.sums(env, 1)
    runner = SegmentedTrajectoryRunner(
        env, backend, sampling_params=SAMPLING, prompt=example.PROMPT, chunk_tokens=8, seed=4
    )

    def twice(step: SegmentStep) -> Branch | None:
        return Branch(2) if not step.branch and step.index == 0 else None

    rollout = runner.run_trajectory(task, step_callback=twice)
    assert rollout.error is None
    (branch,) = rollout.branches
    for each in (rollout, branch):
        assert each.error is None
        assert each.trajectory is not None
        base = env.base_trajectory(each.trajectory)
        assert base.actions[0].text == "".join(a.text for a in each.trajectory.actions)
        generation = base.transitions[0].generation
        assert generation is not None
        # the ids of all chunks in a row are what the model read and wrote, or else they are not given
        if generation.completion_token_ids is not None:
            spelled = backend.detokenize(generation.completion_token_ids).removesuffix("<|im_end|>")
            assert spelled == base.actions[0].text
    own = sum(t.generation.usage.completion_tokens for t in rollout.trajectory or () if t.generation is not None)
    assert own + rollout.discarded_tokens + branch.usage.completion_tokens == rollout.usage.completion_tokens


def test_a_real_server_without_an_assistant_prefix(env: SegmentedEnvironment, backend: Any, example: Any) -> None:
    openai = pytest.importorskip("llenvs_openai", reason="needs the backend openai")
    (task,) = example.sums(env, 1)

    def force_once(step: SegmentStep) -> ForceNext | None:
        return ForceNext("Wait.\n") if len(step.trajectory) == 1 else None

    with openai.OpenAIBackend(backend.model, base_url=backend.base_url, api_key=backend.api_key) as server:
        options: dict[str, Any] = {"sampling_params": SAMPLING, "prompt": example.PROMPT, "seed": 4}
        runner = SegmentedTrajectoryRunner(env, server, chunk_tokens=4, **options)
        rollout = runner.run_trajectory(task, step_callback=force_once)
    assert rollout.error is None
    assert rollout.trajectory is not None
    assert rollout.trajectory.actions[1] == Action("Wait.\n")
    assert rollout.continued_by_message
    assert len(rollout.generations) == 2  # no chunks: each of them would be asked for in words
    (response,) = env.base_trajectory(rollout.trajectory)
    assert response.action.text == "".join(action.text for action in rollout.trajectory.actions)
    base = env.base_env
    whole = base.step(base.reset(options={"task_index": task})[0], response.action)
    assert response.rewards == whole.rewards
    paid = sum(generation.usage.completion_tokens for generation in rollout.generations)
    kept = sum(t.generation.usage.completion_tokens for t in rollout.trajectory if t.generation is not None)
    assert rollout.usage.completion_tokens == paid == kept + rollout.discarded_tokens


def test_the_examples_callback_corrects_wrong_lines(env: SegmentedEnvironment, backend: Any, example: Any) -> None:
    runner = SegmentedTrajectoryRunner(
        env, backend, sampling_params=SamplingParams(temperature=0.0, max_tokens=48), prompt=example.PROMPT
    )
    rollouts = runner.run_batch(example.sums(env, 4), step_callback=example.correct)
    for rollout in rollouts:
        assert rollout.trajectory is not None, rollout.error
        before = None
        for transition in rollout.trajectory:
            judged = transition.rewards["wrong_equations"]
            assert judged.reward in (0.0, -1.0)
            if before is not None and before.reward == -1.0:
                assert transition.action.text == f"Wait, {before.feedback}"
                assert transition.generation is None
            before = judged


def test_the_examples_process_reward(env: SegmentedEnvironment) -> None:
    state, _ = env.reset(options={"task_index": 0})
    replay = env.replay(state, "1 + 6 + 7 = 14\n8 + 1 = 10\nNo equation\n<answer>3</answer>")
    assert [r.rewards["wrong_equations"].reward for r in replay] == [0.0, -1.0, 0.0, 0.0]
    assert replay[1].rewards["wrong_equations"].feedback == "8 + 1 = 9\n"


def test_search_at_segment_boundaries(env: SegmentedEnvironment, backend: Any, example: Any) -> None:
    (task,) = example.sums(env, 1)
    state, _ = env.reset(options={"task_index": task})
    propose = SegmentProposer(
        env, backend, count=3, sampling_params=SAMPLING, prompt=example.PROMPT, chunk_tokens=12
    )
    proposals = propose(state)
    assert sum(share for _, share in proposals) == pytest.approx(1.0)
    assert len({action for action, _ in proposals}) == len(proposals)
    assert propose.usage.completion_tokens >= 3
    for action, _ in proposals:
        ends = bool(action.tool_calls)
        assert len(env.segments(state, action.text)) == 1 or ends
    found = beam_search(env, state, propose, width=2, max_depth=3)
    again = env.replay(state, found.trajectory)
    assert again.total_reward == found.trajectory.total_reward
    assert again.trajectory == found.trajectory


def test_tokens_of_the_small_model(backend: Any) -> None:
    text = "Count the dogs: 12 of them, naïve 数学 😀."
    segments = TokenSegmenter(backend, size=4).split(text)
    assert "".join(segments) == text
    assert all(len(backend.tokenize(segment)) <= 8 for segment in segments)
    assert len(segments) >= len(backend.tokenize(text)) // 8


IN_ANOTHER_PROCESS = """
import json, sys
from llenvs.core import Action, SegmentedEnvironment, SentenceSegmenter, State, make
from llenvs.core.segmentation import final_segment

env = SegmentedEnvironment(make("reasoning_gym/leg_counting", size=9), SentenceSegmenter())
asked = json.load(sys.stdin)
result = env.step(State.from_json(asked["state"]), final_segment(asked["text"]))
json.dump({"state": result.next_state.to_json(), "total": result.rewards.total}, sys.stdout)
"""


def test_a_begun_response_goes_on_in_another_process() -> None:
    env = SegmentedEnvironment(make("reasoning_gym/leg_counting", size=9), SentenceSegmenter())
    state, _ = env.reset(options={"task_index": 3})
    answer = f" <answer>{env.ground_truth(state)}</answer>"
    begun = env.replay(state, "Let me see. There are dogs.", end=False).final_state
    here = env.step(begun, final_segment(answer))
    asked = json.dumps({"state": begun.to_json(), "text": answer})
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=asked,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    there = json.loads(done.stdout)
    assert here.rewards.total == there["total"] == 1.0
    assert State.from_json(there["state"]) == here.next_state


def test_over_an_isolated_environment() -> None:
    pytest.importorskip("llenvs_container", reason="needs the container server")
    inside = make("reasoning_gym/leg_counting", container="process", size=9)
    with SegmentedEnvironment(inside, SentenceSegmenter(), reward_functions=lambda s, a, n: len(a.text)) as env:
        state, _ = env.reset(options={"task_index": 3})
        here = make("reasoning_gym/leg_counting", size=9)
        truth = here.ground_truth(here.reset(options={"task_index": 3})[0])
        replay = env.replay(state, f"One. Two. <answer>{truth}</answer>")
        assert [r.rewards.by_name("score") is None for r in replay] == [True, True, False]
        assert replay[-1].rewards["score"].reward == 1.0
        assert env.replay(state, replay.trajectory).final_state == replay.final_state
        alone = SegmentedEnvironment(here, SentenceSegmenter(), reward_functions=env.reward_functions)
        check_walk(alone, random_segment, through=env, steps=12, branches=6)


def random_segment(state: State[Any], rng: random.Random) -> Action:
    text = rng.choice([" It is 3.", " <answer>12</answer>", "\n", ""])
    return rng.choice([Action(text), final_segment(text), user_feedback("Really?")])
