"""Scorer: rewards of responses, failures apart from rewards of zero."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from arithmetic import answers

from llenvs import Action, Scorer, make
from llenvs.core import SegmentedEnvironment, SentenceSegmenter
from llenvs.core.errors import EpisodeOver, InvalidOption, TaskIndexOutOfRange, UnknownOption
from llenvs.integrations import DatasetProvider, ScoringResult, TaskIdentity, TaskMismatch


def test_one_response() -> None:
    scorer = Scorer("arithmetic/times")
    right = scorer.score(task_index=3, response="I count. <answer>6</answer>")
    assert (right.reward, right.total, right.correct, right.extracted_answer) == (1.0, 1.0, True, "6")
    assert right.signals == {"right": 1.0, "length": 1.0}
    assert (right.feedback, right.error, right.step_rewards) == ((), None, (1.0,))
    assert right.metadata == {"task_index": 3, "seed": 0, "answer": "6", "steps": 1, "done": True}
    wrong = scorer.score(3, Action("6"))
    assert (wrong.reward, wrong.correct, wrong.extracted_answer) == (0.0, False, None)
    assert wrong.feedback == ("no answer",)


def test_the_scorer_says_what_the_environment_says() -> None:
    env = make("arithmetic/times")
    scorer = Scorer(env)
    for index, response in enumerate(answers(20)):
        state, _ = env.reset(options={"task_index": index})
        assert scorer.score(index, response).reward == env.step(state, Action(response)).rewards.total


def counts(state: Any, action: Action, next_state: Any) -> float:
    """A process reward."""
    return float("count" in action.text)


def test_the_response_to_a_segmented_environment_is_divided() -> None:
    env = SegmentedEnvironment(make("arithmetic/times"), SentenceSegmenter(), reward_functions=[counts])
    scorer, response = Scorer(env), "I count. Then I stop. <answer>6</answer>"
    result = scorer.score(3, response)
    assert (result.reward, result.correct, result.extracted_answer) == (2.0, True, "6")
    assert result.step_rewards == (1.0, 0.0, 1.0)
    assert result.signals == {"counts": 1.0, "right": 1.0, "length": 1.0}
    segments = ["I count.", " Then I stop.", env.final(" <answer>6</answer>")]
    assert scorer.score(3, segments).step_rewards == result.step_rewards
    (batched,) = scorer.score_batch([3], [response])
    assert batched == result == asyncio.run(scorer.ascore(3, response))
    assert scorer.score(3, Action("")).reward == 0.0  # nothing said is one segment, too


def test_a_segmented_environment_of_several_turns_wants_a_list() -> None:
    env = SegmentedEnvironment(make("arithmetic/climb"), SentenceSegmenter())
    with pytest.raises(InvalidOption, match="has several turns, so one text is no episode"):
        Scorer(env).score(0, "up")


def test_a_configuration_may_segment() -> None:
    config = {"adapter": "arithmetic", "name": "times", "segmentation": "sentence"}
    with Scorer.from_config(config) as scorer:
        assert scorer.score(3, "I count. <answer>6</answer>").step_rewards == (0.0, 1.0)
    with DatasetProvider.from_config(config) as provider:
        assert (provider[3].prompt, provider[3].ground_truth) == ("What is 3 times 2?", "6")
    with pytest.raises(InvalidOption, match="sentenc"):
        Scorer.from_config({**config, "segmentation": {"by": "sentence", "words": 3}})


def test_a_failure_is_no_reward_of_zero() -> None:
    scorer = Scorer("arithmetic/times", options={"fails": (1,), "unscored": (2,)})
    failed = scorer.score(1, "<answer>2</answer>")
    assert (failed.reward, failed.correct) == (None, None)
    assert failed.error == "OSError: the sandbox is gone"
    unscored = scorer.score(2, "<answer>4</answer>")
    assert unscored.reward is None
    assert "'right' could not be computed: the judge is silent" in str(unscored.error)
    batch = scorer.score_batch([0, 1, 2, 3], ["<answer>0</answer>"] * 4)
    assert [result.reward for result in batch] == [1.0, None, None, 0.0]
    assert [result.error is None for result in batch] == [True, False, False, True]


def test_mistakes_of_the_caller_are_raised() -> None:
    scorer = Scorer("arithmetic/times")
    with pytest.raises(TaskIndexOutOfRange, match="valid: 0 to 19"):
        scorer.score(20, "x")
    with pytest.raises(TaskIndexOutOfRange):
        scorer.score_batch([0, 20, 1], ["x"] * 3)
    with pytest.raises(InvalidOption, match="must be as many as task_indices"):
        scorer.score_batch([0, 1], ["x"])
    with pytest.raises(EpisodeOver):
        scorer.score(0, ["<answer>0</answer>", "and more"])
    with pytest.raises(InvalidOption, match="max_concurrency"):
        Scorer("arithmetic/times", max_concurrency=0)
    with pytest.raises(InvalidOption, match="timeout"):
        Scorer("arithmetic/times", timeout=0)
    with pytest.raises(InvalidOption, match="env"):
        Scorer(42)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="go with an address"):
        Scorer(make("arithmetic/times"), options={"size": 3})


def test_a_row_is_scored_against_no_other_task() -> None:
    row = DatasetProvider("arithmetic/times", options={"by": 3})[4].identity
    assert Scorer("arithmetic/times", options={"by": 3}).score_identified(row, "<answer>12</answer>").reward == 1.0
    with pytest.raises(TaskMismatch, match="task 4 has another prompt"):
        Scorer("arithmetic/times", options={"by": 2}).score_identified(row, "<answer>12</answer>")
    with pytest.raises(TaskMismatch):
        Scorer("arithmetic/times").score_batch([4], ["x"], prompt_sha256s=[row.prompt_sha256])
    made = TaskIdentity.from_json(row.to_json())
    assert made == row
    assert made.make().reset(options={"task_index": 4})[0].observation.prompt == "What is 4 times 3?"
    for broken in ("", "[]", "{}", '{"env": 1}', '{"env": "a/b", "task_index": "x", "prompt_sha256": ""}'):
        with pytest.raises(InvalidOption, match="is no task identity"):
            TaskIdentity.from_json(broken)


def test_batches_keep_their_order_and_reset_a_task_once() -> None:
    env = make("arithmetic/times")
    responses = answers(20, seed=1)
    one_by_one = [Scorer(env).score(i, r) for i, r in enumerate(responses)]
    env.resets = 0  # type: ignore[attr-defined]
    scorer = Scorer(env)
    repeated = scorer.score_batch(
        [i for i in range(20) for _ in range(4)], [r for r in responses for _ in range(4)]
    )
    assert repeated == [result for result in one_by_one for _ in range(4)]
    assert env.resets == 20  # type: ignore[attr-defined]
    assert asyncio.run(scorer.ascore_batch(range(20), responses)) == one_by_one
    assert Scorer(env, max_concurrency=1).score_batch(range(20), responses) == one_by_one
    assert scorer.score_batch([], []) == []


def test_what_waits_is_scored_side_by_side_and_within_the_limit() -> None:
    env = make("arithmetic/times", slow=0.02)
    results = Scorer(env, max_concurrency=4).score_batch(range(20), answers(20))
    assert [r.reward for r in results] == [
        r.reward for r in Scorer("arithmetic/times").score_batch(range(20), answers(20))
    ]
    assert 1 < env.most_at_once <= 4  # type: ignore[attr-defined]


def test_what_takes_too_long_is_a_failure_of_its_own() -> None:
    scorer = Scorer("arithmetic/times", timeout=0.05, options={"slow": 0.6})
    result = asyncio.run(scorer.ascore(0, "<answer>0</answer>"))
    assert result == ScoringResult(None, error="TimeoutError: no score within 0.05 s", metadata={"task_index": 0})
    assert scorer.score_batch([0, 1], ["", ""]) == [result, replace(result, metadata={"task_index": 1})]
    assert [r.reward for r in Scorer("arithmetic/times", timeout=30).score_batch([1], ["<answer>2</answer>"])] == [
        1.0
    ]


def test_transcripts_of_several_turns() -> None:
    scorer = Scorer("arithmetic/climb")
    with pytest.raises(InvalidOption, match=r"has several turns.*agent hook"):
        scorer.score(0, "up")
    result = scorer.score(0, ["up", "down", "up", Action("up")])
    assert (result.reward, result.correct, result.step_rewards) == (3.0, True, (1.0, -1.0, 1.0, 2.0))
    assert result.signals == {"nearer": 2.0, "reached": 1.0}
    assert (result.metadata["steps"], result.metadata["done"]) == (4, True)
    unfinished = scorer.score(0, ["up"])
    assert (unfinished.reward, unfinished.correct, unfinished.metadata["done"]) == (1.0, False, False)
    assert [r.reward for r in scorer.score_batch([0, 1], [["up", "up"], ["up"]])] == [3.0, 1.0]


def test_from_a_configuration() -> None:
    with Scorer.from_config({"name": "arithmetic/times", "by": 5}, max_concurrency=2) as scorer:
        assert scorer.score(2, "<answer>10</answer>").correct
    with pytest.raises(UnknownOption, match="bye"):
        Scorer.from_config({"name": "arithmetic/times", "bye": 5})
    for wrong in ({"adapter": "arithmetic"}, "", 5):
        with pytest.raises(InvalidOption):
            Scorer.from_config(wrong)
