"""States, observations, actions, messages, tools and generations as values."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from llenvs import Action, ChatMessage, Observation, Signal, SignalBundle, State, StepResult
from llenvs.core import (
    FinishReason,
    Generation,
    ImageContent,
    RewardType,
    StateMetadata,
    TokenLogprob,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolStatus,
    Usage,
)
from llenvs.core.encoding import dumps, loads
from llenvs.core.errors import (
    AdapterNotInstalled,
    EncodingFailed,
    EpisodeOver,
    InvalidOption,
    LLEnvsError,
    TaskIndexOutOfRange,
    UnknownOption,
    UpstreamFailed,
    nearest,
)

TOOL = ToolDefinition("add", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}}})
CALL = ToolCall("add", {"a": 1, "b": (2, 3)}, "call_7")
IMAGE = ImageContent(data=b"\x89PNG", detail="low")
MESSAGES = (
    ChatMessage.system("Be brief."),
    ChatMessage.user("Add.", (IMAGE,)),
    ChatMessage.assistant("", (CALL,)),
    ChatMessage("tool", "3", tool_call_id="call_7", name="add", metadata={"signature": b"x"}),
)
OBSERVATION = Observation(
    "What now?", "Add all.", MESSAGES, (IMAGE,), (ToolResult("call_7", "3", ToolStatus.ERROR, "add"),), (TOOL,)
)
STATE = State(
    OBSERVATION,
    {"answer": (1, 2.5), "grid": np.eye(2), 3: {"x"}, "nan": float("nan")},
    StateMetadata(2, "a/b#0@1", True, {"task_index": 0}),
)
GENERATION = Generation(
    "hi",
    (CALL,),
    FinishReason.LENGTH,
    Usage(3, 2, cost=0.1),
    (1, 2, 3),
    (4, 5),
    (TokenLogprob("h", -0.5, 4, (("h", -0.5),)),),
)


@pytest.mark.parametrize("value", [OBSERVATION, Action("x", (CALL,)), *MESSAGES, TOOL, CALL, IMAGE, GENERATION])
def test_records_come_back_equal(value: Any) -> None:
    again = loads(dumps(value))
    assert again == value
    assert type(again) is type(value)


def test_a_state_comes_back_equal_and_steps_as_a_key() -> None:
    again = State.from_json(STATE.to_json())
    assert again == STATE  # arrays and NaN included
    assert hash(again) == hash(STATE)
    assert {STATE: "seen"}[again] == "seen"
    assert type(again.hidden["answer"]) is tuple
    assert again.hidden["grid"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert again.to_json() == STATE.to_json()
    assert State.from_json(STATE.to_json().encode()) == STATE


def test_states_that_differ_are_not_equal() -> None:
    for hidden in ({"a": 1}, {"a": True}, {"a": 1.0}, {"a": [1]}, {"a": (1,)}, {"b": 1}):
        others = [
            h for h in ({"a": 1}, {"a": True}, {"a": 1.0}, {"a": [1]}, {"a": (1,)}, {"b": 1}) if h is not hidden
        ]
        equal = [other for other in others if State(Observation(), hidden) == State(Observation(), other)]
        assert len(equal) == 1  # itself, written anew
    assert State(Observation(), {"a": 1, "b": 2}) == State(Observation(), {"b": 2, "a": 1})
    assert State(Observation("x"), 1) != State(Observation("y"), 1)
    assert State(Observation(), 1) != 1


def test_values_are_frozen() -> None:
    for value, name in ((STATE, "hidden"), (OBSERVATION, "prompt"), (Action("x"), "text"), (CALL, "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "other")


def test_only_a_state_is_read_as_one() -> None:
    with pytest.raises(EncodingFailed, match="expected an encoded State, got Action"):
        State.from_json(dumps(Action("x")))
    with pytest.raises(EncodingFailed, match="not valid JSON"):
        State.from_json("{")


def test_a_step_result_round_trip() -> None:
    result = StepResult(STATE, SignalBundle((Signal("s", reward=1.0),)), True, False, Action("42"), {"a": (1,)})
    again = loads(dumps(result))
    assert again == result
    assert again.done


def test_wrong_types_are_said_at_once() -> None:
    with pytest.raises(TypeError, match=r"Action.text must be a str, got int: 5"):
        Action(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Observation\.prompt must be a str, got NoneType"):
        Observation(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"ChatMessage\.content must be a str, got list"):
        ChatMessage("user", [{"type": "text"}])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown role 'bot'; valid: system, user, assistant, tool"):
        ChatMessage("bot", "x")
    with pytest.raises(ValueError, match="exactly one of data and url"):
        ImageContent(data=b"x", url="y")


def test_sequences_become_tuples() -> None:
    assert Action("", [CALL]).tool_calls == (CALL,)  # type: ignore[arg-type]
    assert Observation(messages=list(MESSAGES)).messages == MESSAGES  # type: ignore[arg-type]
    assert ChatMessage("user", "x", [IMAGE]).images == (IMAGE,)  # type: ignore[arg-type]


def test_making_actions() -> None:
    assert Action.from_text("x") == Action(text="x")
    assert Action.from_tool_call("add", {"a": 1}).tool_calls == (ToolCall("add", {"a": 1}, "call_0"),)


def test_images_and_tools_for_apis() -> None:
    assert ImageContent(data=b"hi", media_type="image/jpeg").as_url == "data:image/jpeg;base64,aGk="
    assert ImageContent(url="https://example.org/a.png").as_url == "https://example.org/a.png"
    assert TOOL.to_openai() == {
        "type": "function",
        "function": {"name": "add", "description": "Adds.", "parameters": TOOL.parameters},
    }


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4, 0.5) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44, 0.5)
    assert (Usage(1, 2) + Usage(3, 4)).cost is None
    assert Usage(1, 2, 3, 4).total_tokens == 3


# -- signals ----------------------------------------------------------------------------------------------


def test_the_total_is_the_weighted_sum_of_the_numbers() -> None:
    bundle = SignalBundle(
        (
            Signal("score", reward=0.5, weight=2.0),
            Signal("format", RewardType.FORMAT, 1.0, "good", 0.25),
            Signal("words", RewardType.PROCESS, None, "try harder"),
            Signal("shown", reward=float("nan"), weight=0.0),
        )
    )
    assert bundle.total == 1.25
    assert SignalBundle().total == 0.0
    assert type(SignalBundle().total) is float
    assert bundle.names == ("score", "format", "words", "shown")
    assert bundle.feedback_texts == ("good", "try harder")
    assert [s.name for s in bundle.by_type(RewardType.OUTCOME)] == ["score", "shown"]
    assert bundle["format"].feedback == "good"
    assert bundle.by_name("nope") is None
    assert "score" in bundle
    assert "nope" not in bundle
    assert len(bundle) == 4
    with pytest.raises(KeyError, match="no signal 'nope'; there are: score, format"):
        bundle["nope"]
    assert bundle.extended([Signal("more")]).names[-1] == "more"


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="twice: a, b"):
        SignalBundle((Signal("a"), Signal("b"), Signal("a"), Signal("b"), Signal("c")))
    with pytest.raises(ValueError, match="twice: a"):
        SignalBundle((Signal("a"),)).extended([Signal("a")])


@pytest.mark.parametrize("number", [True, 1, np.float32(1), np.float64(1), np.int64(1), np.bool_(True)])
def test_rewards_of_any_number_type_become_floats(number: Any) -> None:
    signal = Signal("s", reward=number, weight=number)
    assert (signal.reward, type(signal.reward), type(signal.weight)) == (1.0, float, float)
    assert loads(dumps(signal)) == signal


@pytest.mark.parametrize("wrong", ["1", [1], {}, object()])
def test_what_is_no_number_is_no_reward(wrong: Any) -> None:
    with pytest.raises(TypeError, match="reward of signal 's' must be a number"):
        Signal("s", reward=wrong)


def test_reward_types_by_their_text() -> None:
    bundle = SignalBundle((Signal("s", "step", 1.0),))  # type: ignore[arg-type]
    assert bundle.by_type(RewardType.STEP)
    with pytest.raises(ValueError, match="'stepp' is not a valid RewardType"):
        Signal("s", "stepp")  # type: ignore[arg-type]


# -- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        LLEnvsError("x"),
        UnknownOption("siez", ["size", "seed"], "options of a/b"),
        InvalidOption("size", -1, "must be positive", valid="1 to 9"),
        AdapterNotInstalled("adapter 'x'", "x"),
        TaskIndexOutOfRange(9, 3, "a/b"),
        UpstreamFailed("a/b", "stepping", ValueError("x")),
        EpisodeOver("over"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_errors_survive_pickling_and_copying(error: LLEnvsError) -> None:
    # a process pool pickles what its workers raise
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_messages_say_what_is_valid() -> None:
    assert str(UnknownOption("siez", ["size", "seed"])) == "unknown option 'siez'; did you mean 'size'?"
    assert str(UnknownOption("zzz", ["size", "seed"])) == "unknown option 'zzz'; valid: size, seed"
    assert str(TaskIndexOutOfRange(9, 3, "a/b")) == "a/b: task_index 9 is out of range; valid: 0 to 2"
    assert "none, the environment is empty" in str(TaskIndexOutOfRange(0, 0, "a/b"))
    assert str(AdapterNotInstalled("adapter 'x'", "x-y")) == (
        "adapter 'x' is not installed; run: pip install \"llenvs[x-y]\""
    )
    assert str(InvalidOption("a", "v" * 500, "is long")).endswith("...")


def test_nearest_ignores_case_and_dashes() -> None:
    assert nearest("Leg-Counting", ["leg_counting", "chain_sum"]) == ["leg_counting"]
    assert nearest("sum", ["leg_counting", "chain_sum"]) == ["chain_sum"]
    assert nearest("qqq", ["leg_counting"]) == []
