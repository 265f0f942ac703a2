"""The encoding: exact for all plain data, and safe against everything else."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llenvs import Action, Observation, State
from llenvs.core import RewardType, Signal, ToolCall
from llenvs.core.encoding import canonical, decode, dumps, encode, loads, record, record_enum
from llenvs.core.errors import EncodingFailed

ZONES = st.one_of(
    st.none(),
    st.just(dt.UTC),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)), st.text(max_size=5)),
)
FOLDS = st.sampled_from((0, 1))
DTYPES = ("?", "i1", "u2", "<i4", ">i8", "<f2", "<f4", ">f8", "<c8", "<c16", "S3", "<U2", "<M8[s]", "<m8[ms]")


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.sampled_from(((), (0,), (3,), (2, 3), (2, 0, 4))))
    numbers = np.arange(math.prod(shape), dtype="i4").reshape(shape)
    array = numbers.astype(dtype) if dtype.kind != "m" else numbers.astype("i8").astype(dtype)
    return array.T if draw(st.booleans()) else array


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**62, max_value=2**80),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.sampled_from(["\ud800", "$tuple", "", "\u0000"]),
    st.binary(),
    st.complex_numbers(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.dates(),
    st.builds(lambda d, z, f: d.replace(tzinfo=z, fold=f), st.datetimes(), ZONES, FOLDS),
    st.builds(lambda t, z, f: t.replace(tzinfo=z, fold=f), st.times(), ZONES, FOLDS),
    st.timedeltas(),
    st.builds(range, st.integers(-9, 9), st.integers(-(2**70), 2**70), st.sampled_from((1, -2, 3))),
    st.sampled_from(
        [np.float32(0.1), np.float64("nan"), np.int8(-3), np.bool_(True), np.str_("a\0"), np.bytes_(b"a\0")]
    ),
    st.sampled_from([np.datetime64("2020-01-02", "D"), np.timedelta64(3, "ms"), np.complex64(1 + 2j)]),
    st.sampled_from(list(RewardType)),
)
HASHABLE = st.recursive(
    SCALARS, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)), max_leaves=4
)
VALUES = st.recursive(
    st.one_of(SCALARS, st.builds(bytearray, st.binary()), arrays(), st.decimals()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.sets(HASHABLE, max_size=3),
        st.dictionaries(st.text(), inner, max_size=4),
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.builds(lambda v: Signal("s", metadata={"v": v}), inner),
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Equality that sees what `==` overlooks: types, signs of zero, NaN. Independent of the encoder."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float | complex | np.generic | Decimal):
        return repr(one) == repr(other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        pairs, others = list(one.items()), list(other.items())
        return len(pairs) == len(others) and all(same(a, b) for a, b in zip(pairs, others, strict=True))
    if isinstance(one, set | frozenset):
        left = list(other)
        for item in one:
            match = next((i for i, each in enumerate(left) if same(item, each)), None)
            if match is None:
                return False
            left.pop(match)
        return not left
    if isinstance(one, dt.datetime | dt.time):
        names = one.tzinfo is None or one.tzinfo.tzname(None) == other.tzinfo.tzname(None)
        return names and (one.isoformat(), one.fold) == (other.isoformat(), other.fold)
    if isinstance(one, range):
        return (one.start, one.stop, one.step) == (other.start, other.stop, other.step)
    if isinstance(one, Signal):
        return same((one.name, one.reward, one.metadata), (other.name, other.reward, other.metadata))
    return bool(one == other)


@settings(max_examples=400, deadline=None)
@given(VALUES)
def test_plain_data_comes_back_exactly(value: Any) -> None:
    text = dumps(value)
    again = loads(text)
    assert same(value, again)
    assert dumps(again) == text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no strict JSON"))
    assert text.isascii()


def test_the_comparison_of_this_test_sees_differences() -> None:
    different = [(1, True), (1, 1.0), (0.0, -0.0), ([1], (1,)), ({1}, frozenset({1})), (b"a", bytearray(b"a"))]
    different += [
        (np.float32(1), np.float64(1)),
        (np.zeros(2), np.zeros((2, 1))),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ]
    different += [(range(0), range(1, 1)), (Decimal("1.0"), Decimal("1"))]
    assert not any(same(one, other) for one, other in different)
    assert same(float("nan"), float("nan"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None, "é"]}, '{"a":[1,null,"\\u00e9"]}'),
        ((1, 2), '{"$tuple":[1,2]}'),
        ({"$x": 1}, '{"$dict":[["$x",1]]}'),
        ({1: "a"}, '{"$dict":[[1,"a"]]}'),
        (b"hi", '{"$bytes":"aGk="}'),
        (float("nan"), '{"$float":"nan"}'),
        (-math.inf, '{"$float":"-inf"}'),
        (2**64, '{"$int":"0x10000000000000000"}'),
        (frozenset({(2,), (1,)}), '{"$frozenset":[{"$tuple":[1]},{"$tuple":[2]}]}'),
        (Action("x"), '{"$Action":{"text":"x"}}'),
        (
            dt.datetime(2020, 1, 2, tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
            '{"$datetime":{"text":"2020-01-02T00:00:00","fold":0,"offset":[0,0,1]}}',
        ),
        (RewardType.STEP, '{"$RewardType":"STEP"}'),
    ],
)
def test_the_format(value: Any, text: str) -> None:
    assert dumps(value) == text
    assert same(loads(text), value)


def test_equal_sets_give_equal_text_in_every_process() -> None:
    code = "from llenvs.core.encoding import dumps; print(dumps({'a','b','c','d','e', 1, (2,), None}))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_canonical_ignores_the_order_of_keys_alone() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
    assert canonical({1: "a", (2,): "b"}) == canonical({(2,): "b", 1: "a"})
    assert dumps({"a": 1, "b": 2}) != dumps({"b": 2, "a": 1})
    assert canonical([1, 2]) != canonical([2, 1])
    assert canonical(1) != canonical(True)
    assert canonical([1]) != canonical((1,))


class Colour(Enum):
    RED = 1


class Word(StrEnum):
    YES = "yes"


Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Plain:
    x: int


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Colour.RED,
        Word.YES,
        Point(1, 2),
        Plain(1),
        OrderedDict(a=1),
        lambda: 1,
        print,
        int,
        np.ma.masked_array([1, 2], mask=[False, True]),
        np.array([object()]),
        np.zeros(2, dtype=[("a", "i4")]),
        np.random.default_rng(0),
        dt.datetime(2020, 1, 1, tzinfo=type("Zone", (dt.tzinfo,), {})()),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_plain_data_is_refused_with_its_path(value: Any) -> None:
    with pytest.raises(EncodingFailed, match=r"^value\.a\[1\]\['b c'\]: "):
        dumps({"a": [0, {"b c": value}]})
    with pytest.raises(EncodingFailed):
        State(Observation(), value).to_json()


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
def test_long_doubles_differ_between_machines_and_are_refused() -> None:
    with pytest.raises(EncodingFailed, match="cannot be part of a state"):
        dumps(np.longdouble(1))


def test_subclasses_of_arrays_would_lose_their_type_and_are_refused() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1]])
    with pytest.raises(EncodingFailed, match=r"numpy\.matrix is no plain data"):
        dumps(matrix)


def test_a_foreign_enum_of_the_same_name_is_no_record() -> None:
    foreign: Any = Enum("RewardType", {"OUTCOME": 1})  # type: ignore[misc]
    with pytest.raises(EncodingFailed):
        dumps(foreign["OUTCOME"])


def test_values_that_contain_themselves() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(EncodingFailed, match="refers to itself"):
        dumps(loop)


def nested(depth: int, kind: str) -> Any:
    value: Any = 1.5
    for _ in range(depth):
        value = {
            "list": [value],
            "tuple": (value,),
            "dict": {"a": value},
            "keys": {1: value},
            "frozenset": frozenset({value}) if kind == "frozenset" else None,
            "signal": Signal("s", metadata={"v": value}),
        }[kind]
    return value


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "keys", "frozenset", "signal"])
def test_whatever_can_be_written_can_be_read(kind: str) -> None:
    deepest = 0
    for depth in range(30, 140, 10):
        try:
            text = dumps(nested(depth, kind))
        except EncodingFailed:
            break
        assert dumps(loads(text)) == text
        deepest = depth
    assert 50 <= deepest <= 100


NDARRAY = {"dtype": "<f8", "shape": [1], "data": "AAAAAAAA8D8="}


def ndarray(**changes: Any) -> str:
    return json.dumps({"$ndarray": {**NDARRAY, **changes}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nope",
        "NaN",
        "[Infinity]",
        "[1e999]",
        "9" * 5000,
        '{"a":1,"a":2}',
        '{"$tuple":[1],"$tuple":[2]}',
        '{"$tuple":[1],"b":2}',
        "[" * 100_000,
        "[" * 300 + "]" * 300,
        '{"$tuple":[' * 300 + "]}" * 300,
        '{"$NoSuchRecord":{}}',
        '{"$":1}',
        '{"$tuple":{"a":1}}',
        '{"$tuple":"ab"}',
        '{"$set":[[1]]}',
        '{"$set":[1,1]}',
        '{"$dict":["ab"]}',
        '{"$dict":[[1]]}',
        '{"$dict":[[[1],2]]}',
        '{"$dict":[[1,2],[1,3]]}',
        '{"$dict":{"a":1}}',
        '{"$int":5}',
        '{"$int":"zz"}',
        '{"$float":"1.5"}',
        '{"$float":[]}',
        '{"$bytes":"?"}',
        '{"$bytes":5}',
        '{"$bytes":"é"}',
        '{"$complex":"12"}',
        '{"$complex":["1"]}',
        '{"$decimal":"x"}',
        '{"$decimal":[0,[1],0]}',
        '{"$fraction":[1,0]}',
        '{"$fraction":["1/3"]}',
        '{"$date":"2020-13-01"}',
        '{"$date":5}',
        '{"$datetime":"2020-01-01"}',
        '{"$datetime":{"text":"2020-01-01T00:00:00"}}',
        '{"$datetime":{"text":"2020-01-01T00:00:00","fold":7}}',
        '{"$datetime":{"text":"2020-01-01T00:00:00+01:00","fold":0}}',
        '{"$datetime":{"text":"2020-01-01T00:00:00","fold":0,"offset":[1,0,0]}}',
        '{"$datetime":{"text":"2020-01-01T00:00:00","fold":0,"offset":[0,0,0],"zone":5}}',
        '{"$timedelta":[1e9]}',
        '{"$timedelta":[99999999999,0,0]}',
        '{"$range":[0,1,0]}',
        '{"$range":["a"]}',
        '{"$RewardType":"NOPE"}',
        '{"$RewardType":["OUTCOME"]}',
        ndarray(shape=[10**12]),
        ndarray(shape=[10**12], data=""),
        ndarray(shape=[-1]),
        ndarray(shape=[True]),
        ndarray(shape="1"),
        ndarray(shape=[1.0]),
        ndarray(dtype="O"),
        ndarray(dtype="f8,f8"),
        ndarray(dtype=[["a", "f8"]]),
        ndarray(dtype="nope"),
        ndarray(dtype="V8"),
        ndarray(dtype="<U2", data="/////////38="),
        ndarray(data=None),
        '{"$ndarray":[1]}',
        '{"$numpy":{"dtype":"<f8","shape":[1],"data":"AAAAAAAA8D8="}}',
        '{"$numpy_str":5}',
        '{"$Action":[]}',
        '{"$Action":{"nope":1}}',
        '{"$Action":{"text":5}}',
        '{"$Action":{"tool_calls":[5]}}',
        '{"$State":{"observation":3,"hidden":1}}',
        '{"$State":{"hidden":1}}',
        '{"$State":{"observation":{"$Observation":{}},"hidden":1,"metadata":{"a":1}}}',
        '{"$StateMetadata":{"step":"1"}}',
        '{"$StateMetadata":{"step":true}}',
        '{"$StateMetadata":{"is_terminal":0}}',
        '{"$Observation":{"messages":[{"$Action":{}}]}}',
        '{"$Observation":{"task":5}}',
        '{"$ChatMessage":{"role":"nobody"}}',
        '{"$Signal":{"name":"s","reward":"1"}}',
        '{"$Signal":{"name":"s","reward_type":"outcome"}}',
        '{"$SignalBundle":{"signals":[1]}}',
        '{"$TokenLogprob":{"token":"a","logprob":0.5,"top":[["a"]]}}',
        '{"$ImageContent":{}}',
        '{"$Generation":{"prompt_token_ids":["1"]}}',
    ],
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(EncodingFailed):
        loads(text)


def test_the_error_names_field_and_type() -> None:
    with pytest.raises(EncodingFailed, match=r"^\$State.observation must be Observation, got int$"):
        loads('{"$State":{"observation":3,"hidden":1}}')
    with pytest.raises(EncodingFailed, match=r"\$Action has no field 'txt'; it has: text, tool_calls"):
        loads('{"$Action":{"txt":""}}')


TAGS = tuple(
    f"${name}"
    for name in (
        "tuple", "set", "frozenset", "dict", "bytes", "bytearray", "int", "float", "complex", "decimal",
        "fraction", "datetime", "date", "time", "timedelta", "range", "ndarray", "numpy", "numpy_str",
        "State", "Action", "Observation", "Signal", "StepResult", "Trajectory", "Transition", "ChatMessage",
        "ToolCall", "Generation", "RewardType", "Usage", "TokenLogprob",
    )
)  # fmt: skip
JSON_DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
        st.builds(
            lambda tag, content: {tag: content},
            st.sampled_from(
                TAGS
            ),
            inner,
        ),
        st.fixed_dictionaries(
            {"dtype": st.sampled_from([*DTYPES, "O", "V"]), "shape": inner, "data": st.sampled_from(["", "AAAA"])}
        ),
        st.fixed_dictionaries({}, optional={"text": inner, "fold": inner, "observation": inner, "hidden": inner}),
    ),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(JSON_DATA)
def test_any_json_gives_a_value_or_encoding_failed(data: Any) -> None:
    try:
        value = decode(data)
    except EncodingFailed:
        return
    assert dumps(loads(dumps(value))) == dumps(value)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30) | st.binary(max_size=30))
def test_any_text_gives_a_value_or_encoding_failed(text: str | bytes) -> None:
    with contextlib.suppress(EncodingFailed):
        loads(text)


@pytest.mark.parametrize("data", [object(), (1,), {1: 2} and {"a": b"x"}, float("nan"), {"a": {2}}])
def test_decode_takes_json_data_alone(data: Any) -> None:
    with pytest.raises(EncodingFailed):
        decode(data)


def test_encode_gives_json_data() -> None:
    assert encode({"a": (1, {2})}) == {"a": {"$tuple": [1, {"$set": [2]}]}}


def test_records_of_others() -> None:
    @record
    @dataclass(frozen=True, slots=True)
    class KitPlace:
        name: str
        at: tuple[int, int] = (0, 0)
        tags: frozenset[str] = frozenset()

    @record_enum
    class KitColour(Enum):
        RED = 1

    place = KitPlace("home", (1, 2))
    assert dumps(place) == '{"$KitPlace":{"name":"home","at":{"$tuple":[1,2]}}}'
    assert loads(dumps(place)) == place
    assert loads(dumps(KitColour.RED)) is KitColour.RED
    with pytest.raises(EncodingFailed, match="at must be"):
        loads('{"$KitPlace":{"name":"home","at":[1]}}')
    with pytest.raises(ValueError, match="two records are called Action"):
        record(dataclass(frozen=True)(type("Action", (), {"__module__": "elsewhere"})))
    with pytest.raises(ValueError, match="is the tag of a plain type"):
        record(dataclass(frozen=True)(type("tuple", (), {})))


def test_arrays_come_back_writable_and_their_own() -> None:
    array = loads(dumps(np.arange(6).reshape(2, 3)))
    array[0, 0] = 9
    assert array.tolist() == [[9, 1, 2], [3, 4, 5]]


def test_tuples_in_arguments_of_tool_calls() -> None:
    call = ToolCall("f", {"x": (1, 2)}, "id")
    assert loads(dumps(call)).arguments == {"x": (1, 2)}
    assert type(loads(dumps(call)).arguments["x"]) is tuple


def test_fractions_and_dates_are_values() -> None:
    value = {"f": Fraction(10**30, 7), "d": dt.date(2024, 2, 29), "t": dt.timedelta(-1, 2, 3)}
    assert loads(dumps(value)) == value
