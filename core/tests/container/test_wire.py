"""The wire format: exact, and as short as it can be."""

import json

import pytest

from llenvs import Action, Observation, Signal, SignalBundle, State, StepResult
from llenvs.container.known_states import KnownStates
from llenvs.container.wire import (
    Description,
    StateText,
    action_from_wire,
    describe_answer,
    read_description,
    read_reset,
    read_rewards,
    read_step,
    reset_answer,
    shared_end_answer,
    state_from_wire,
    step_answer,
)
from llenvs.core.encoding import dumps, encode
from llenvs.core.environment import EnvironmentSpec
from llenvs.core.errors import EncodingFailed, InvalidAction
from llenvs.core.state import SealedHidden, StateMetadata
from llenvs.core.tools import ToolCall, ToolDefinition

HIDDEN = {"t": (1, 2), "s": {3}, "b": b"\x00", (1, 2): float("inf")}
STATE = State(Observation("Größe?", task="x"), HIDDEN, StateMetadata(1, "e#1", False, {"k": (1,)}))


def test_the_text_in_parts_is_the_text_of_the_state():
    text = StateText.of(STATE)
    assert text.full == STATE.to_json()
    assert State.from_json(text.full) == STATE
    without = State.from_json(text.without_hidden)
    assert without.hidden is None
    assert without.observation == STATE.observation
    assert len(text) == len(text.observation) + len(text.hidden) + len(text.metadata)
    assert StateText.of(STATE, text.hidden) == text


def test_keys_are_of_the_content():
    key = StateText.of(STATE).key()
    assert len(key) == 32
    assert set(key) <= set("0123456789abcdef")
    assert StateText.of(State.from_json(STATE.to_json())).key() == key
    others = [
        StateText("1", "23", "4"),
        StateText("12", "3", "4"),
        StateText("1", "2", "34"),
        StateText("1", "2", "3"),
    ]
    assert len({other.key() for other in others}) == 4


def test_steps_come_back_as_they_were():
    result = StepResult(
        STATE,
        SignalBundle((Signal("a", reward=float("nan"), feedback="x"),)),
        True,
        False,
        Action("7"),
        {"n": (1,)},
    )
    full = json.loads(step_answer(StateText.of(STATE).full, "k", result, hidden_shared=False))
    assert dumps(read_step(full, STATE)) == dumps(result)
    assert full["key"] == "k"
    assert "state_key" not in full
    shared = json.loads(
        step_answer(StateText.of(STATE).without_hidden, None, result, hidden_shared=True, state_key="s")
    )
    again = read_step(shared, STATE)
    assert dumps(again) == dumps(result)
    assert again.next_state.hidden is HIDDEN
    assert shared["state_key"] == "s"
    in_one_go = json.loads(shared_end_answer(result, "s"))
    assert in_one_go == shared


def test_resets_rewards_and_descriptions_come_back_as_they_were():
    answer = json.loads(reset_answer(StateText.of(STATE).full, None, {"seed": 1}))
    assert read_reset(answer) == (STATE, {"seed": 1})
    bundle = SignalBundle((Signal("a", reward=1.0), Signal("b")))
    assert read_rewards({"rewards": encode(bundle)}) == bundle
    with pytest.raises(EncodingFailed):
        read_rewards({"rewards": [1]})
    description = Description(
        EnvironmentSpec("n", "a"), 3, (ToolDefinition("t"),), ("task_index",), True, 1000, {"python": "3"}
    )
    assert read_description(json.loads(describe_answer(description))) == description


@pytest.mark.parametrize(
    ("data", "action"),
    [
        ("hello", Action("hello")),
        (encode(Action("x", (ToolCall("f", {"a": (1,)}, "c"),))), Action("x", (ToolCall("f", {"a": (1,)}, "c"),))),
        ({"text": "x"}, Action("x")),
        ({}, Action()),
        ({"tool_calls": [{"name": "f"}]}, Action("", (ToolCall("f"),))),
    ],
)
def test_actions(data, action):
    assert action_from_wire(data) == action


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        [],
        {"txt": "x"},
        {"text": 7},
        {"tool_calls": "f"},
        {"tool_calls": [{}]},
        {"tool_calls": [{"name": 7}]},
        {"tool_calls": [{"name": "f", "arguments": [1]}]},
        {"tool_calls": [{"name": "f", "function": "x"}]},
    ],
)
def test_what_is_no_action(data):
    with pytest.raises(InvalidAction):
        action_from_wire(data)


def test_what_is_no_state():
    for data in ({}, [], "x", {"$Observation": {}}, encode(Action("x"))):
        with pytest.raises(EncodingFailed):
            state_from_wire(data)


def test_a_sealed_hidden_part_is_a_value():
    state = State(Observation("x"), SealedHidden(b"\x01\x02"))
    assert State.from_json(state.to_json()) == state
    assert '"$SealedHidden"' in state.to_json()


def test_known_states_are_by_identity_and_bounded():
    known = KnownStates(limit=2)
    states = [State(Observation("same"), None) for _ in range(3)]
    for i, state in enumerate(states):
        known.remember(state, f"k{i}", 7)
    assert known.find(states[0]) is None
    found = known.find(states[2])
    assert found is not None
    assert (found.key, found.holder, found.state) == ("k2", 7, states[2])
    assert known.find(State(Observation("same"), None)) is None
    known.remember(states[0], None, 7)
    assert known.find(states[0]) is None
    known.forget(states[2])
    assert known.find(states[2]) is None
