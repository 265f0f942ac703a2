"""Wrong arguments of the hooks: one clear error where they are given, in every hook."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from arithmetic import ArithmeticOptions, Times

from llenvs import Observation, Scorer, make
from llenvs.core import SegmentedEnvironment, SentenceSegmenter
from llenvs.core.environment import Start
from llenvs.core.errors import InvalidOption, LLEnvsError, UnknownOption
from llenvs.core.message import ImageContent
from llenvs.integrations import DatasetProvider, TaskIdentity, split_tasks
from llenvs.integrations.control_text import broken_up, without_end
from llenvs.integrations.episode import Episode
from llenvs.integrations.openrlhf import OpenRLHFReward, make_openrlhf_dataset, make_openrlhf_reward_fn, row_of
from llenvs.integrations.scorer_pool import ScorerPool
from llenvs.integrations.trl import (
    make_trl_environment,
    make_trl_reward_fn,
    make_trl_rollout_fn,
)
from llenvs.integrations.verl import compute_score, make_verl_dataset, make_verl_reward_fn

TIMES, CLIMB = "arithmetic/times", "arithmetic/climb"


@pytest.mark.parametrize("wrong", ["a", -1.5, True, [1], "1.0"])
def test_an_index_is_not_rounded_to_another_task(wrong: Any) -> None:
    hooks: list[Callable[[], Any]] = [
        lambda: ScorerPool(TIMES).find({"task_index": wrong}),
        lambda: make_trl_reward_fn(TIMES)(["?"], ["x"], task_index=[wrong]),
        lambda: make_verl_reward_fn(TIMES)("s", "x", "", {"task_index": wrong}),
        lambda: make_trl_environment(CLIMB)().reset(task_index=wrong),
    ]
    for hook in hooks:
        with pytest.raises(InvalidOption, match=r"task_index.*is no whole number"):
            hook()


@pytest.mark.parametrize("wrong", [None, "a", 1.5, True, [1]])
def test_the_scorer_takes_no_other_index(wrong: Any) -> None:
    scorer = Scorer(TIMES)
    for call in (
        lambda: scorer.score(wrong, "x"),
        lambda: scorer.score_batch([wrong], ["x"]),
        lambda: asyncio.run(scorer.ascore(wrong, "x")),
    ):
        with pytest.raises(InvalidOption, match=r"task_index.*is no whole number"):
            call()


@pytest.mark.parametrize("wrong", [None, 5, {"a": 1}, [5], b"x", ["x", None]])
def test_the_scorer_takes_no_other_response(wrong: Any) -> None:
    for scorer in (Scorer(TIMES), Scorer(TIMES, timeout=5)):
        with pytest.raises(InvalidOption, match="response: is no text, Action, or list of these"):
            scorer.score(1, wrong)
        with pytest.raises(InvalidOption, match="response: is no text, Action, or list of these"):
            scorer.score_batch([1], [wrong])


@pytest.mark.parametrize("field", ["task_index", "prompt_sha256", "env", "seed", "options"])
def test_identities_of_other_types_are_none(field: str) -> None:
    right = {"env": TIMES, "task_index": 1, "prompt_sha256": "0" * 64, "options": {}, "seed": 0}
    assert TaskIdentity.from_json(json.dumps(right)).task_index == 1
    for wrong in (1.7, True, None, [1]):
        with pytest.raises(InvalidOption, match="is no task identity"):
            TaskIdentity.from_json(json.dumps({**right, field: wrong}))


def test_what_a_provider_is_given() -> None:
    numpy = pytest.importorskip("numpy", reason="needs numpy")
    provider = DatasetProvider(TIMES, indices=numpy.array([3, 1]))
    assert [type(index) for index in provider.indices] == [int, int]
    for wrong in (5, "12"):
        with pytest.raises(InvalidOption, match="indices: must be a list of whole numbers"):
            DatasetProvider(TIMES, indices=wrong)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    with pytest.raises(InvalidOption, match="is in a folder that does not exist"):
        DatasetProvider(TIMES).to_parquet(tmp_path / "none" / "rows.parquet")
    with pytest.raises(InvalidOption, match="chunk: must be a whole number"):
        DatasetProvider(TIMES).to_parquet(tmp_path / "rows.parquet", chunk="a")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_indices_as_columns_have_them() -> None:
    numpy = pytest.importorskip("numpy", reason="needs numpy")
    reward = make_trl_reward_fn(TIMES)
    for index in (3, numpy.int64(3), 3.0, "3"):
        assert reward(["?"], ["<answer>6</answer>"], task_index=[index]) == [1.0]
        assert ScorerPool(TIMES).find(row_of(str(int(index))))[1] == 3


@pytest.mark.parametrize("wrong", [0, -1, "a", None, True, 1.5])
def test_concurrency(wrong: Any) -> None:
    for make_hook in (Scorer, make_trl_reward_fn, make_verl_reward_fn, make_openrlhf_reward_fn):
        with pytest.raises(InvalidOption, match="max_concurrency"):
            make_hook(TIMES, max_concurrency=wrong)
    with pytest.raises(InvalidOption, match="max_concurrency"):
        make_trl_rollout_fn(CLIMB, max_concurrency=wrong)


@pytest.mark.parametrize("wrong", [0, -1, "a", True, float("nan"), float("inf")])
def test_limits_of_time(wrong: Any) -> None:
    for make_hook in (Scorer, make_trl_reward_fn, make_verl_reward_fn, make_openrlhf_reward_fn):
        with pytest.raises(InvalidOption, match="timeout"):
            make_hook(TIMES, timeout=wrong)
    for make_hook in (make_trl_rollout_fn, make_trl_environment):
        with pytest.raises(InvalidOption, match="timeout"):
            make_hook(CLIMB, timeout=wrong)


@pytest.mark.parametrize("wrong", [-1, "a", None, True, 1.5])
def test_retries(wrong: Any) -> None:
    for make_hook in (make_trl_rollout_fn, make_trl_environment):
        with pytest.raises(InvalidOption, match="retries"):
            make_hook(CLIMB, retries=wrong)
    with pytest.raises(InvalidOption, match="retries"):
        make_verl_reward_fn(TIMES, retries=wrong)


@pytest.mark.parametrize("wrong", [0, -1, "a", True, 1.5])
def test_turns(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="max_turns"):
        make_trl_rollout_fn(CLIMB, max_turns=wrong)


@pytest.mark.parametrize("wrong", [None, "ignore", True, float("nan"), [0]])
def test_what_stands_for_a_missing_reward(wrong: Any) -> None:
    for make_hook in (make_trl_reward_fn, make_verl_reward_fn, make_openrlhf_reward_fn):
        with pytest.raises(InvalidOption, match="on_error"):
            make_hook(TIMES, on_error=wrong)


@pytest.mark.parametrize("wrong", [None, 5, b"x", ["x", 3], {"a": 1}])
def test_what_is_no_response(wrong: Any) -> None:
    hooks: list[Callable[[], Any]] = [
        lambda: make_trl_reward_fn(TIMES)(["?"], [wrong], task_index=[1]),
        lambda: make_verl_reward_fn(TIMES)("s", wrong, "", {"task_index": 1}),
        lambda: OpenRLHFReward(TIMES).response(wrong, "?"),
    ]
    for hook in hooks:
        with pytest.raises(InvalidOption):
            hook()


def test_columns_of_another_length() -> None:
    reward = make_trl_reward_fn(TIMES)
    for column in ([1], [1, 2, 3], 3, "12"):
        with pytest.raises(InvalidOption, match="one for each of the 2 completions"):
            reward(["?"] * 2, ["x", "y"], task_index=column)
    with pytest.raises(InvalidOption, match="needed in every row"):
        reward(["?"], ["x"])


def test_rows_of_verl() -> None:
    reward = make_verl_reward_fn(TIMES)
    for extra_info in ([1], "x", 5):
        with pytest.raises(InvalidOption, match="extra_info"):
            reward("s", "x", "", extra_info)
    with pytest.raises(InvalidOption, match="num_turns"):
        reward("s", "x", "", {"task_index": 1, "num_turns": "x"})
    row = {"llenvs": DatasetProvider(TIMES)[1].task_id}
    with pytest.raises(UnknownOption, match="did you mean 'retries'"):
        compute_score("s", "x", "", row, retires=3)
    # veRL's own come along and are left alone
    assert compute_score("s", "x", "", row, reward_router_address="a", reward_model_tokenizer=None)["score"] == 0.0
    for signals in ("right", 5, [5]):
        with pytest.raises(InvalidOption, match="signals"):
            compute_score("s", "x", "", row, signals=signals)
        with pytest.raises(InvalidOption, match="signals"):
            make_verl_reward_fn(TIMES, signals=signals)
    with pytest.raises(InvalidOption, match="on_error"):
        compute_score("s", "x", "", row, on_error=[1])


def test_rewards_of_verl_share_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that come together make one; other options, another."""
    import time
    from concurrent.futures import ThreadPoolExecutor

    from llenvs.integrations import verl
    from llenvs.integrations.verl import _shared

    class Slow(verl.VerlReward):
        def __init__(self, *given: Any, **options: Any) -> None:
            time.sleep(0.05)
            super().__init__(*given, **options)

    monkeypatch.setattr(verl, "VerlReward", Slow)
    monkeypatch.setattr(verl, "_made", {})
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(lambda _: id(_shared({"retries": 7})), range(32)))
    assert len(made) == 1
    assert id(_shared({"retries": 8})) not in made


def test_files_of_rows(tmp_path: Any) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    for write in (make_verl_dataset, make_openrlhf_dataset):
        for chunk in (0, "x", None, 1.5, True):
            with pytest.raises(InvalidOption, match="chunk"):
                write(TIMES, tmp_path / "a.parquet", chunk=chunk)  # type: ignore[operator]
        with pytest.raises(InvalidOption, match="folder that does not exist"):
            write(TIMES, tmp_path / "none" / "a.parquet")  # type: ignore[operator]
        with pytest.raises(InvalidOption, match="is no path"):
            write(TIMES, 5)  # type: ignore[operator]

        def failing(*_: Any, env: Any = None, **__: Any) -> Any:
            raise OSError("the tasks are gone")

        env = make(TIMES)
        env._start = failing  # type: ignore[method-assign]
        with pytest.raises(OSError, match="the tasks are gone"):
            write(env, tmp_path / "a.parquet")  # type: ignore[operator]
    assert list(tmp_path.iterdir()) == []  # neither half a file nor the beginning of one


@pytest.mark.parametrize("wrong", ["a", None, -1, True, 2.5, [1]])
def test_splits(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="tasks"):
        split_tasks(wrong)
    with pytest.raises(InvalidOption, match="test_share"):
        split_tasks(10, test_share=wrong)


def test_environments() -> None:
    for make_hook in (
        make_trl_reward_fn,
        make_verl_reward_fn,
        make_openrlhf_reward_fn,
        make_trl_environment,
        make_trl_rollout_fn,
    ):
        for wrong in (5, "nope", "nope/x", "arithmetic/nope"):
            with pytest.raises(LLEnvsError):
                make_hook(wrong)
    with pytest.raises(InvalidOption, match="go with an address"):
        make_trl_rollout_fn(make(CLIMB), options={"size": 3})


def test_texts_of_control_tokens() -> None:
    said = (
        "x<|im_end|>\n<|im_start|>assistant\nup</s><\uff5cend\uff5c> <end_of_turn>[INST] 1 < 2 "
        "<answer>3</answer> [1]"
    )
    assert broken_up(said) == (
        "x< |im_end|>\n< |im_start|>assistant\nup< /s>< \uff5cend\uff5c> < end_of_turn>[ INST] 1 < 2 "
        "<answer>3</answer> [1]"
    )
    assert broken_up("a<|x|>b<y>", ["<|x|>"]) == "a< |x|>b<y>"


def test_ends_of_turns_are_found_in_one_pass() -> None:
    """A model that has lost its way writes white space without end; a pattern for it took minutes."""
    for text in (" " * 3_000_000 + "x", "</s> " * 300_000 + "x", "</s>" * 300_000 + "x"):
        assert without_end(text) == text
    assert without_end("x" + "</s> " * 300_000) == "x"


def test_loops_of_whole_responses_refuse_segments() -> None:
    segmented = SegmentedEnvironment(make(TIMES), SentenceSegmenter())
    row = {"task_index": 3}
    for refused in (
        lambda: make_trl_environment(segmented),
        lambda: make_trl_rollout_fn(segmented),
        lambda: Episode(ScorerPool(segmented), row),  # as the loops of veRL and OpenRLHF begin theirs
    ):
        with pytest.raises(InvalidOption, match=r"is segmented, and a turn .*base_env"):
            refused()
    said = "I count. <answer>6</answer>"
    assert make_trl_reward_fn(segmented)(["?"], [said], task_index=[3]) == [1.0]
    assert make_verl_reward_fn(segmented)("s", said, "", row)["score"] == 1.0


def test_rows_of_what_was_made_by_hand_want_the_environment() -> None:
    segmented = SegmentedEnvironment(make(TIMES), SentenceSegmenter())
    identity = DatasetProvider(segmented)[3].task_id
    with pytest.raises(InvalidOption, match=r"can be made here.*give the hook the environment"):
        make_trl_reward_fn()(["?"], ["x"], llenvs=[identity])
    assert make_trl_reward_fn(segmented)(["?"], ["<answer>6</answer>"], llenvs=[identity]) == [1.0]


def test_rows_cannot_hold_images() -> None:
    class Shown(Times):
        def _start(self, task_index: int, seed: int, options: Any) -> Start:
            start = super()._start(task_index, seed, options)
            return Start(replace(start.observation, images=(ImageContent(b"x"),)), start.hidden)

    provider = DatasetProvider(Shown(ArithmeticOptions()))
    assert provider[1].prompt == "What is 1 times 2?"
    for prompt in (None, "Be brief."):
        item = DatasetProvider(Shown(ArithmeticOptions()), system_prompt=prompt)[1]
        with pytest.raises(InvalidOption, match="shows images, and rows for trainers carry text alone"):
            item.row()


def test_a_split_that_leaves_a_side_empty_is_told() -> None:
    class Alike(Times):
        def _start(self, task_index: int, seed: int, options: Any) -> Start:
            return Start(Observation("Guess."), {"answer": task_index, "i": task_index})

    with pytest.warns(UserWarning, match="is empty: there are few tasks, or few prompts"):
        split = split_tasks(Alike(ArithmeticOptions()), test_share=0.5)
    assert sorted(map(len, split)) == [0, 20]
