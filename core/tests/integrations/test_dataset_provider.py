"""DatasetProvider, identities of tasks, and splits."""

from __future__ import annotations

import hashlib
import json

import pytest

from llenvs import DatasetProvider, make
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange
from llenvs.integrations import prompt_sha256, split_tasks


def test_items() -> None:
    provider = DatasetProvider("arithmetic/times", options={"by": 3})
    assert len(provider) == 20
    item = provider[4]
    assert (item.task_index, item.prompt, item.ground_truth) == (4, "What is 4 times 3?", "12")
    assert item.messages == [{"role": "user", "content": "What is 4 times 3?"}]
    assert [message.content for message in item.chat] == [item.prompt]
    assert item.metadata["task_index"] == 4
    assert provider[-1].task_index == 19
    assert [item.prompt for item in provider][:2] == ["What is 0 times 3?", "What is 1 times 3?"]
    with pytest.raises(IndexError):
        provider[20]


def test_nothing_is_made_before_it_is_asked_for() -> None:
    env = make("arithmetic/times")
    provider = DatasetProvider(env)
    part = provider[5:15:5]
    assert env.resets == 0  # type: ignore[attr-defined]
    assert [item.task_index for item in part] == [5, 10]
    assert [item.task_index for item in part.get_items([1])] == [10]
    assert env.resets == 3  # type: ignore[attr-defined]


def test_indices_are_checked() -> None:
    assert [item.task_index for item in DatasetProvider("arithmetic/times", indices=[7, 3, 7])] == [7, 3, 7]
    for wrong in (20, -1, True, "3"):
        with pytest.raises(TaskIndexOutOfRange):
            DatasetProvider("arithmetic/times", indices=[wrong])


def test_the_system_prompt_goes_first() -> None:
    item = DatasetProvider("arithmetic/times", system_prompt="Be brief.")[1]
    assert [message["role"] for message in item.messages] == ["system", "user"]
    assert item.messages[0]["content"] == "Be brief."
    plain = DatasetProvider("arithmetic/times")[1]
    assert item.task_id == plain.task_id  # the task is the same, whatever is said around it


def test_rows_hold_no_answer_unless_asked() -> None:
    row = next(DatasetProvider("arithmetic/times", options={"by": 3}).rows())
    assert set(row) == {"prompt", "task_index", "llenvs"}
    identity = json.loads(row["llenvs"])
    digest = hashlib.sha256(b"What is 0 times 3?").hexdigest()
    assert identity == {
        "env": "arithmetic/times",
        "options": {"by": 3},
        "seed": 0,
        "task_index": 0,
        "prompt_sha256": digest,
    }
    assert (
        next(DatasetProvider("arithmetic/times", options={"by": 3}).rows(ground_truth=True))["ground_truth"] == "0"
    )


def test_options_must_have_a_json_form() -> None:
    provider = DatasetProvider(make("arithmetic/times", extra_rewards=[lambda *_: None]))
    with pytest.raises(InvalidOption, match="must be plain JSON"):
        provider[0].row()


def test_the_hash_covers_all_that_the_model_sees() -> None:
    from dataclasses import replace

    from llenvs import ChatMessage, Observation
    from llenvs.core import ToolDefinition

    plain = Observation("a")
    others = [
        Observation("b"),
        replace(plain, task="t"),
        replace(plain, messages=(ChatMessage.user("a"),)),
        replace(plain, available_tools=(ToolDefinition("f"),)),
        Observation("\ud800"),  # half a surrogate pair has no UTF-8
    ]
    assert len({prompt_sha256(each) for each in [plain, *others]}) == 6


def test_splits_are_apart_and_stable() -> None:
    train, test = split_tasks(1000, test_share=0.2, seed=1)
    assert sorted([*train, *test]) == list(range(1000))
    assert not set(train) & set(test)
    assert 150 < len(test) < 250
    assert split_tasks(1000, test_share=0.2, seed=1) == (train, test)
    assert split_tasks(1000, test_share=0.2, seed=2).test != test
    longer = split_tasks(2000, test_share=0.2, seed=1)
    assert tuple(i for i in longer.test if i < 1000) == test  # more tasks do not move a task to the other side
    assert split_tasks(10, test_share=0).test == ()
    assert split_tasks(10, test_share=1).train == ()
    with pytest.raises(InvalidOption, match="is no share"):
        split_tasks(10, test_share=1.5)


def test_tasks_of_one_prompt_are_on_one_side() -> None:
    env = make("arithmetic/times", by=0, size=40)
    env._start, start = lambda i, seed, options: start(i % 4, seed, options), env._start  # type: ignore[method-assign]
    train, test = split_tasks(env, test_share=0.5, seed=3)
    assert {i % 4 for i in train}.isdisjoint({i % 4 for i in test})
    assert train
    assert test
    provider = DatasetProvider(env, indices=test)
    assert [item.task_index for item in provider] == list(test)
