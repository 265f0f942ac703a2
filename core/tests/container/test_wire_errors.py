"""Errors cross the wire as themselves."""

import json

import pytest

from llenvs.container.errors import StateMissing, error_from_wire, error_to_wire
from llenvs.core.errors import (
    AdapterNotInstalled,
    ContainerFailed,
    EpisodeOver,
    InvalidOption,
    LLEnvsError,
    TaskIndexOutOfRange,
    UnknownOption,
    UpstreamFailed,
)

ERRORS = [
    AdapterNotInstalled("adapter 'x'", "x"),
    ContainerFailed("it died", "line 1\nline 2"),
    EpisodeOver("over"),
    InvalidOption("a.b", (1, {2}), "is bad", valid="none"),
    TaskIndexOutOfRange(9, 5, "a/b"),
    UnknownOption("sise", ["size", "seed"], "of it"),
    UpstreamFailed("a/b", "resetting", ValueError("x")),
    StateMissing("gone"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_class_message_and_attributes(error):
    again = error_from_wire(json.loads(json.dumps(error_to_wire(error))))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_values_without_an_exact_form_are_told_in_words():
    again = error_from_wire(error_to_wire(InvalidOption("f", len, "is bad")))
    assert again.value == repr(len)  # type: ignore[attr-defined]
    assert "is bad" in str(again)


def test_an_unknown_class_becomes_its_nearest_known_ancestor():
    class OfAnAdapter(UpstreamFailed):
        pass

    data = error_to_wire(OfAnAdapter("a/b", "stepping", "x"))
    assert data["type"] == "OfAnAdapter"
    data["type"] = "NotImportedHere"
    assert type(error_from_wire(data)) is UpstreamFailed
    data["ancestors"] = []
    assert type(error_from_wire(data)) is LLEnvsError


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"message": 7},
        {"message": "x"},
        {"message": "x", "type": "os.system", "ancestors": "LLEnvsError", "attributes": [1]},
        {"message": "x", "type": ["EpisodeOver"], "attributes": {"a": {"$nonsense": 1}}},
        {"message": "x", "type": "Exception", "ancestors": 7, "attributes": {"__class__": "int"}},
        {"message": "x", "type": "EpisodeOver", "attributes": {"$tuple": [1]}},
        {"message": "x", "type": "EpisodeOver", "attributes": {"$dict": [[1, 2]]}},
    ],
)
def test_hostile_servers(data):
    error = error_from_wire(data)
    assert isinstance(error, LLEnvsError)
    assert str(error)
    assert all(isinstance(name, str) for name in vars(error))
