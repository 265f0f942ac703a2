"""Environments and data sets of one's own, and how their older states are reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aviary_own
import pytest
from aviary_play import answers, begin, call, played, reward

import llenvs
from llenvs import Action
from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolStatus
from llenvs_aviary.environment import AviaryEnvironment

Own = Callable[..., AviaryEnvironment]
FILE = str(Path(__file__).with_name("aviary_own.py"))


def test_a_functional_environment(own: Own) -> None:
    env = own("treasure", env_options={"start": 1}, success_reward=1.0)
    state = begin(env, 0)
    assert state.observation.prompt == "You stand at 1. Find the treasure."
    assert [tool.name for tool in env.available_tools] == ["walk", "dig", "roll", "fall"]
    results = played(env, 0, [call("dig"), call("walk", by=2), call("fall"), call("dig")])
    assert [answers(r)[0] for r in results] == [
        "nothing at 1",
        "at 3 after 1 walks",
        "Encountered exception during tool call: RuntimeError('you fell')",
        "gold",
    ]
    # the upstream pays what its tools left in the state, also for the steps after
    assert [reward(r) for r in results] == [-0.1, -0.1, -0.1, 1.0]
    assert results[2].next_state.observation.tool_results[0].status is ToolStatus.ERROR
    assert results[3].terminated
    assert env.spec.is_success(results[3].rewards) is True
    # the branches of one state share nothing, though its state is a list in a dict
    far = env.step(env.step(state, call("walk", by=5)).next_state, call("walk", by=5))
    assert (answers(far), answers(env.step(state, call("walk", by=1)))) == (
        ["at 11 after 2 walks"],
        ["at 2 after 1 walks"],
    )


@pytest.mark.parametrize(("name", "copies"), [("Counter", True), ("Closed", False), ("Locked", False)])
def test_objects_are_copied_where_that_is_safe_and_replayed_where_not(own: Own, name: str, copies: bool) -> None:
    env = own(name, env_options={"goal": 9})
    results = played(env, 0, [call("add"), call("add"), call("add", number=2)])
    assert [answers(r) for r in results] == [["1"], ["2"], ["4"]]
    other = env.step(results[0].next_state, call("add", number=4))
    assert answers(other) == ["5"]
    assert answers(env.step(results[2].next_state, call("add"))) == ["5"]
    assert (env.stats.snapshots > 0, env.stats.replayed == 0) == (copies, copies)


def test_a_copy_that_shares_its_function_would_be_wrong(own: Own) -> None:
    """What the search for shared functions is there for."""
    env = own("Closed", env_options={"goal": 9}, branching="copy")
    results = played(env, 0, [call("add"), call("add")])
    assert answers(env.step(results[0].next_state, call("add"))) != ["2"]


def test_replay_can_be_demanded(own: Own) -> None:
    env = own("Counter", env_options={"goal": 9}, branching="replay")
    results = played(env, 0, [call("add"), call("add")])
    assert answers(env.step(results[0].next_state, call("add"))) == ["2"]
    assert (env.stats.snapshots, env.stats.replayed) == (0, 1)


def test_chance_is_a_function_of_the_seed(own: Own) -> None:
    import random

    env = own("treasure")
    random.seed(5)
    expected = random.Random(5).random()
    first = [answers(env.step(begin(env, 0, seed), call("roll")))[0] for seed in (1, 1, 2)]
    assert first[0] == first[1] != first[2]
    assert random.random() == expected  # the user's own numbers go on as if nothing had been drawn


def test_an_environment_that_dictates_its_chat(own: Own) -> None:
    env = own("Talking", env_options={"goal": 9})
    state = begin(env, 0)
    opening = (ChatMessage.system("You are a counter."), ChatMessage.user("Count to 9."))
    assert (state.observation.messages, state.observation.prompt) == (opening, "Count to 9.")
    action = call("add", number=2)
    seen = env.step(state, action).next_state.observation.messages
    assert seen[:2] == opening
    assert (seen[2].role, seen[2].tool_calls) == ("assistant", action.tool_calls)
    assert [(m.role, m.content) for m in seen[3:]] == [
        ("tool", "2"),
        ("user", "The count is 2."),
        ("user", "Look:"),
    ]
    assert (seen[5].images[0].media_type, (seen[5].images[0].data or b"")[1:4]) == ("image/png", b"PNG")


def test_objects_of_the_process(make: Own) -> None:
    env = make("custom", env=aviary_own.Counter(2))
    assert answers(played(env, 0, [call("add")])[0]) == ["1"]
    with pytest.raises(
        InvalidOption, match=r"cannot be copied \(cannot pickle '_thread.lock' object\); give the class"
    ):
        make("custom", env=aviary_own.Locked())
    env = make("custom", env=aviary_own.objects)
    assert [begin(env, index).observation.prompt for index in (0, 1)] == ["Count to 2.", "Count to 4."]
    env = make("custom", env=lambda goal: aviary_own.Counter(goal + 1), env_options=[{"goal": 1}, {"goal": 2}])
    assert [begin(env, index).observation.prompt for index in (0, 1)] == ["Count to 2.", "Count to 3."]


def test_data_sets(make: Own) -> None:
    env = make("custom", dataset=f"{FILE}:Stories", dataset_options={"topics": ["a", "b", "c"]})
    assert len(env) == 3
    assert begin(env, 2).observation.prompt == "Write a 5 word story via print_story about c"
    assert begin(env, 2).metadata.info["task_id"] == "c"
    env = make("custom", dataset=f"{FILE}:together")  # hands out its own objects; each episode gets a copy
    first, second = begin(env, 1), begin(env, 1)
    assert answers(env.step(first, call("add"))) == answers(env.step(second, call("add"))) == ["1"]
    assert aviary_own.together.get_new_env_by_idx(1).count == 0
    env = make("custom", dataset="dummy", size=3)
    assert (len(env), begin(env, 2).observation.prompt) == (3, "Write a 5 word story via print_story")


def test_size_and_seed_choose_tasks(make: Own) -> None:
    def topics(**options: Any) -> list[str]:
        env = make("custom", dataset=f"{FILE}:Stories", dataset_options={"topics": list("abcdef")}, **options)
        return [begin(env, index).metadata.info["task_id"] for index in range(len(env))]

    assert topics(size=3) == ["a", "b", "c"]
    assert topics(seed=1) == topics(seed=1) != topics(seed=2)
    assert sorted(topics(seed=1)) == list("abcdef")
    assert topics(seed=1, size=2) == topics(seed=1)[:2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "exactly one of env and dataset"),
        ({"env": "x:y", "dataset": "dummy"}, "exactly one of env and dataset"),
        ({"env": "no.such.module:Env"}, "no.such.module cannot be imported"),
        ({"env": "nowhere.py:Env"}, "there is no file nowhere.py"),
        ({"env": "Counter"}, "does not say where the object is"),
        ({"env": f"{FILE}:Countr"}, "has no Countr, got"),
        ({"env": f"{FILE}:PIXEL"}, "is no environment"),
        ({"env": f"{FILE}:Counter", "env_options": []}, "is an empty list"),
        ({"env": f"{FILE}:objects", "env_options": {"goal": 1}}, "takes none"),
        ({"env": f"{FILE}:Counter", "dataset_options": {}}, "belongs to dataset"),
        ({"dataset": "gsm9k"}, "is no data set"),
        ({"dataset": "dummy"}, "size: is needed"),
        ({"dataset": f"{FILE}:Counter"}, "made no aviary TaskDataset"),
    ],
)
def test_wrong_options(make: Own, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        make("custom", **options)
    assert said in str(caught.value)


def test_what_the_upstream_raises_is_said(own: Own, make: Own) -> None:
    env = own("Breaking")
    with pytest.raises(UpstreamFailed, match=r"aviary/custom: .*stepping it: KeyError: 'lost my place'"):
        env.step(begin(env, 0), Action("x"))
    env = own("Slow", time_limit=0.2)
    with pytest.raises(UpstreamFailed, match=r"longer than time_limit=0.2 seconds"):
        env.step(begin(env, 0), Action("x"))
    env = own("Counter", env_options={"gaol": 1})
    with pytest.raises(UpstreamFailed, match=r"unexpected keyword argument 'gaol'"):
        begin(env, 0)
    env = own("treasure", tool_errors="raise")  # but this one handles the exceptions of its tools itself
    assert "RuntimeError" in answers(env.step(begin(env, 0), call("fall")))[0]
    env = make("dummy", tool_errors="raise")
    with pytest.raises(UpstreamFailed, match=r"could not convert string to float: 'abc'"):
        env.step(begin(env, 0), call("cast_float", x="abc"))
    with pytest.raises(UpstreamFailed, match=r"unexpected keyword argument 'y'"):
        env.step(begin(env, 0), call("cast_float", y="abc"))


def test_the_same_by_the_address_of_a_module() -> None:
    with llenvs.make("aviary/custom", env="aviary.core:DummyEnv", env_options={"task": "frogs"}) as env:
        assert begin(env, 0).observation.prompt.endswith("about frogs")
