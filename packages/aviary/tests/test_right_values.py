"""Values seen at the upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aviary_play import act, answers, begin, call, played, reward

from llenvs import Action
from llenvs.core.tools import ToolStatus
from llenvs_aviary.environment import AviaryEnvironment

Make = Callable[..., AviaryEnvironment]


@pytest.fixture(scope="module")
def test_split(gsm8k: str) -> Any:
    import llenvs

    with llenvs.make("aviary/gsm8k", data_dir=gsm8k) as env:
        yield env


@pytest.mark.parametrize(("split", "size"), [("test", 1319), ("train_full", 200), ("train", 160), ("val", 40)])
def test_sizes_of_splits(make: Make, gsm8k: str, split: str, size: int) -> None:
    assert len(make("gsm8k", data_dir=gsm8k, split=split)) == size


def test_first_problem(test_split: AviaryEnvironment) -> None:
    state = begin(test_split, 0)
    assert state.observation.prompt.startswith("Janet’s ducks lay 16 eggs per day. She eats three")
    assert state.metadata.info["task_id"] == "test_0"
    assert state.hidden["truth"]["answer"] == 18.0
    assert test_split.ground_truth(state) == "18"
    assert state.observation.messages == ()
    assert [tool.name for tool in state.observation.available_tools] == ["calculator", "submit_answer"]
    assert state.observation.available_tools[0].parameters == {
        "type": "object",
        "properties": {"expr": {"description": "A valid Python expression.", "title": "Expr", "type": "string"}},
        "required": ["expr"],
    }


def test_a_solved_problem(test_split: AviaryEnvironment) -> None:
    actions = [
        call("calculator", expr="16-3-4"),
        call("calculator", expr="9*2"),
        call("submit_answer", answer="18"),
    ]
    results = played(test_split, 0, actions)
    assert [answers(r) for r in results] == [["9"], ["18"], ["True"]]
    assert [reward(r) for r in results] == [0.0, 0.0, 1.0]
    assert [r.terminated for r in results] == [False, False, True]
    last = results[-1]
    assert last.rewards.total == 1.0
    assert (last.rewards["correct"].reward, last.rewards["submitted"].reward) == (1.0, 1.0)
    assert test_split.spec.is_success(last.rewards) is True
    assert last.next_state.hidden["truth"]["total_reward"] == 1.0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("17", 0.0), ("eighteen", -1.0), ("$18", -1.0), ("18.0005", 1.0), ("18.01", 0.0), (18, 1.0), ([18], -1.0)],
)
def test_answers(test_split: AviaryEnvironment, answer: Any, expected: float) -> None:
    (result,) = played(test_split, 0, [call("submit_answer", answer=answer)])
    assert (reward(result), result.terminated) == (expected, True)
    assert result.rewards["correct"].reward == (1.0 if expected == 1.0 else 0.0)


def test_a_failing_expression(test_split: AviaryEnvironment) -> None:
    (result,) = played(test_split, 0, [call("calculator", expr="1/0")])
    assert answers(result) == ["Error using calculator: ValueError('Division by zero is not allowed')."]
    assert (reward(result), result.terminated) == (-1.0, True)
    assert result.next_state.observation.tool_results[0].status is ToolStatus.ERROR
    assert test_split.spec.is_success(result.rewards) is False


def test_unknown_tools(test_split: AviaryEnvironment) -> None:
    (alone,) = played(test_split, 0, [call("guess", x=1)])
    assert (answers(alone), reward(alone), alone.terminated) == ([""], -1.0, True)
    assert alone.next_state.observation.tool_results[0].status is ToolStatus.UNKNOWN_TOOL
    (mixed,) = played(test_split, 0, [act(("guess", {}), ("submit_answer", {"answer": "18"}))])
    assert (answers(mixed), reward(mixed), mixed.terminated) == (["", "True"], 1.0, True)


def test_text_alone(test_split: AviaryEnvironment) -> None:
    (result,) = played(test_split, 0, [Action("I think it is 18.")])
    hint = "No tool calls received. Please call one or more tools to proceed."
    assert (result.next_state.observation.prompt, reward(result), result.done) == (hint, 0.0, False)


def test_validation_and_training_problems(make: Make, gsm8k: str) -> None:
    val = make("gsm8k", data_dir=gsm8k, split="val")
    states = [begin(val, index) for index in range(4)]
    assert [s.metadata.info["task_id"] for s in states] == ["val_0", "val_5", "val_10", "val_15"]
    assert [s.hidden["truth"]["answer"] for s in states] == [72.0, 35.0, 121.0, 448000.0]
    train = make("gsm8k", data_dir=gsm8k, split="train")
    states = [begin(train, index) for index in range(2)]
    assert [s.metadata.info["task_id"] for s in states] == ["train_1", "train_2"]
    assert states[0].hidden["truth"]["answer"] == 10.0


def test_hotpotqa_search_and_lookup_in_one_message(make: Make, hotpotqa: str) -> None:
    env = make("hotpotqa", data_dir=hotpotqa)
    assert len(env) == 4
    results = played(
        env,
        1,
        [
            act(("search", {"entity": "Tamsin Orrel"}), ("lookup", {"keyword": "viaduct"})),
            call("search", entity="Halden Viaduct"),
            call("submit_answer", answer="It opened in 1931."),
        ],
    )
    assert answers(results[0])[0].endswith("She also wrote two books on stone arches..")
    assert answers(results[0])[1].startswith("(Result 1 / 1) Tamsin Orrel was a civil engineer")
    assert (answers(results[2]), reward(results[2]), results[2].terminated) == (["Finished."], 1.0, True)
    signals = {s.name: s.reward for s in results[2].rewards}
    assert (signals["correct"], signals["exact_match"], signals["submitted"]) == (1.0, 0.0, 1.0)


def test_hotpotqa_similar_titles_and_lookup_without_a_page(make: Make, hotpotqa: str) -> None:
    env = make("hotpotqa", data_dir=hotpotqa)
    state = begin(env, 0)
    assert state.observation.prompt == (
        "Question: What is the capital of the island country whose national dish is smoked cod with turnips?"
    )
    similar = env.step(state, call("search", entity="Ardena"))
    assert answers(similar) == [
        "Search for 'Ardena' returned no results. Similar: ['Ardenia', 'Ardenia (song)', 'Ardenia (film)']."
    ]
    assert reward(similar) == 0.0
    lookup = env.step(state, call("lookup", keyword="capital"))
    assert answers(lookup) == ["Lookup failed. You have not specified a Wikipedia page yet."]
    year = env.step(state, call("search", entity=1931))  # a number, which the upstream takes
    assert "no page for '1931' is at hand" in answers(year)[0]
    nothing = env.step(state, call("search", entity=""))
    assert (answers(nothing), nothing.terminated) == (["Search failed. No entity provided."], True)


def test_dummy(make: Make) -> None:
    env = make("dummy", tasks=["frogs"])
    state = begin(env, 0)
    assert state.observation.prompt == "Write a 5 word story via print_story about frogs"
    told = env.step(state, call("print_story", story="a frog sat and sang"))
    assert (answers(told), reward(told), told.terminated) == (["null"], 1.0, True)
    assert env.spec.is_success(told.rewards) is True


def test_a_branch_after_the_story(make: Make) -> None:
    env = make("dummy", end_immediately=False)
    told = env.step(begin(env, 0), call("print_story", story="one two three four five"))
    assert not told.done
    branch = env.step(told.next_state, call("cast_int", x=5.6))
    assert (answers(branch), reward(branch)) == (["5"], 1.0)  # the upstream pays again for what was told before
    again = env.step(told.next_state, call("cast_float", x="2"))
    assert answers(again) == ["2.0"]
    assert len(told.next_state.hidden["recipe"].turns) == 2
    assert len(branch.next_state.hidden["recipe"].turns) == len(again.next_state.hidden["recipe"].turns) == 3
