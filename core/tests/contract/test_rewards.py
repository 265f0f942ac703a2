"""Reward functions and how a configuration names them."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs import Action, FormatReward, Observation, RewardType, Signal, State
from llenvs.core import CallableReward, LengthReward, RewardFunction
from llenvs.core.errors import InvalidOption, LLEnvsError, UnknownOption
from llenvs.core.rewards import UnknownRewardFunction, make_reward_functions

STATE = State(Observation("?"), None)


def given(function: RewardFunction, text: str) -> Signal:
    return function(STATE, Action(text), STATE)


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("<answer>4</answer>", 1.0),
        ("thinking <answer>\n4\n</answer> done", 1.0),
        ("", 0.0),
        ("4", 0.0),
        ("<answer>4", 0.0),
        ("4</answer>", 0.0),
        ("<answer></answer>", 0.0),
        ("<answer>  \n</answer>", 0.0),
        ("</answer>4<answer>", 0.0),
        ("<answer>4</answer><answer>5</answer>", 0.0),
        ("<answer><answer>4</answer>", 0.0),
        ("<Answer>4</Answer>", 0.0),
    ],
)
def test_format_by_tag(text: str, reward: float) -> None:
    signal = given(FormatReward(), text)
    assert signal.reward == reward
    assert (signal.name, signal.reward_type, signal.weight) == ("format", RewardType.FORMAT, 1.0)
    expected = None if reward else "The response must contain one <answer>...</answer> with the answer in it."
    assert signal.feedback == expected


def test_format_by_pattern() -> None:
    whole = FormatReward(pattern=r"\A<think>.*</think>\s*\S.*\Z", weight=0.2)
    assert given(whole, "<think>a\nb</think> 4").reward == 1.0
    assert given(whole, "so <think>a</think> 4").reward == 0.0
    assert given(whole, "4").feedback is not None
    assert given(whole, "4").weight == 0.2


@pytest.mark.parametrize(("length", "reward"), [(0, 1.0), (10, 1.0), (15, 0.5), (20, 0.0), (500, 0.0)])
def test_length(length: int, reward: float) -> None:
    assert given(LengthReward(10), "x" * length).reward == reward


def test_functions() -> None:
    def shout(state: State[Any], action: Action, next_state: State[Any]) -> float:
        return float(action.text.isupper())

    assert given(CallableReward(shout), "HI") == Signal("shout", RewardType.OUTCOME, 1.0)
    with_words = CallableReward(lambda s, a, n: (0.5, "louder"), name="loud", weight=2)
    assert given(with_words, "") == Signal("loud", RewardType.OUTCOME, 0.5, "louder", 2.0)
    assert given(CallableReward(lambda s, a, n: Signal("own", reward=1.0)), "").name == "own"
    assert given(CallableReward(lambda s, a, n: True, name="flag"), "").reward == 1.0


@pytest.mark.parametrize("value", [None, "1", (1, 2), (1, "a", 3), [1.0]])
def test_a_function_that_gives_no_number(value: Any) -> None:
    with pytest.raises(InvalidOption, match=r"extra_rewards.odd: must return a number"):
        given(CallableReward(lambda s, a, n: value, name="odd"), "")


def test_from_a_configuration() -> None:
    made = make_reward_functions(
        ["format", {"type": "length", "max_characters": 5, "weight": 0.1}, FormatReward("think", name="thinks")]
    )
    assert [(f.name, f.weight) for f in made] == [("format", 1.0), ("length", 0.1), ("thinks", 1.0)]
    assert [f.name for f in make_reward_functions("format")] == ["format"]
    assert [f.name for f in make_reward_functions({"type": "format", "tag": "a"})] == ["format"]
    assert [f.name for f in make_reward_functions(FormatReward)] == ["format"]
    assert [f.name for f in make_reward_functions([lambda s, a, n: 1.0])] == ["<lambda>"]
    assert make_reward_functions(None) == ()


@pytest.mark.parametrize(
    ("specs", "error", "text"),
    [
        (["formt"], UnknownRewardFunction, "unknown reward function 'formt'; did you mean 'format'"),
        ([{"type": ["format"]}], UnknownRewardFunction, "unknown reward function"),
        ([{"tag": "answer"}], InvalidOption, "needs a 'type'.*valid: format, length"),
        ([{"type": "format", "tga": "answer"}], UnknownOption, "'tga'; did you mean 'tag'"),
        ([{"type": "format", "tag": ""}], InvalidOption, "extra_rewards.tag: must be a text"),
        ([{"type": "format", "tag": 5}], InvalidOption, "extra_rewards.tag: must be a text"),
        ([{"type": "format", "pattern": "("}], InvalidOption, "is no regular expression"),
        ([{"type": "format", "tag": "a", "pattern": "b"}], InvalidOption, "takes tag or pattern, not both"),
        ([{"type": "format", "weight": "1"}], InvalidOption, "extra_rewards.weight: must be a finite number"),
        ([{"type": "format", "weight": float("nan")}], InvalidOption, "must be a finite number"),
        ([{"type": "format", "name": ""}], InvalidOption, "extra_rewards.name"),
        ([{"type": "length", "max_characters": 0}], InvalidOption, "must be a positive integer"),
        (["format", "format"], InvalidOption, "'format' occurs twice"),
        ([5], InvalidOption, "must be a name, a mapping"),
        (5, InvalidOption, "must be a list"),
    ],
)
def test_wrong_configurations(specs: Any, error: type[LLEnvsError], text: str) -> None:
    with pytest.raises(error, match=text):
        make_reward_functions(specs)
