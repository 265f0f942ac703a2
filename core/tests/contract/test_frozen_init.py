"""Values that are made faster than a frozen dataclass makes itself, and are like it in all else."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field

import pytest

from llenvs import Observation, State
from llenvs.core import Signal
from llenvs.core.frozen_init import frozen_init


@dataclass(frozen=True, slots=True)
class Plain:
    """What `frozen_init` is compared with."""

    name: str
    weight: float = 1.0
    parts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")


@frozen_init
@dataclass(frozen=True, slots=True)
class Fast:
    """`Plain`, made faster."""

    name: str
    weight: float = 1.0
    parts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")


def test_it_takes_and_keeps_the_same() -> None:
    for arguments in (("a",), ("a", 2.0), ("a", 2.0, [3])):
        assert dataclasses.astuple(Fast(*arguments)) == dataclasses.astuple(Plain(*arguments))
    assert Fast(parts=[1], name="b") == Fast("b", 1.0, [1])
    assert str(inspect.signature(Fast)) == str(inspect.signature(Plain))
    assert Fast("a").parts is not Fast("a").parts


def test_wrong_arguments_are_refused_in_the_same_words() -> None:
    for arguments, options in (((), {}), (("a", 1.0, [], 4), {}), (("a",), {"size": 1}), (("",), {})):
        said = []
        for kind in (Plain, Fast):
            with pytest.raises((TypeError, ValueError)) as caught:
                kind(*arguments, **options)  # type: ignore[arg-type]
            said.append(str(caught.value).replace(kind.__name__, "it"))
        assert said[0] == said[1]


def test_it_is_frozen_and_can_be_copied() -> None:
    made = Fast("a", parts=[1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.weight = 2.0  # type: ignore[misc]
    assert dataclasses.replace(made, weight=2.0) == Fast("a", 2.0, [1])
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):  # noqa: S301
        assert other == made


def test_the_records_of_the_contract_are_made_so() -> None:
    for kind in (Observation, State, Signal):
        assert "object" not in kind.__init__.__code__.co_names
        assert kind.__init__.__qualname__ == f"{kind.__qualname__}.__init__"
    with pytest.raises(TypeError, match=r"Observation.__init__\(\) got an unexpected keyword argument 'text'"):
        Observation(text="x")  # type: ignore[call-arg]


def test_what_it_cannot_do_is_said() -> None:
    @dataclass(slots=True)
    class Changing:
        name: str

    @dataclass(frozen=True, slots=True)
    class Named:
        name: str = field(kw_only=True)

    @dataclass(frozen=True)
    class Slotless:
        name: str

    for kind in (Changing, Named, Slotless):
        with pytest.raises(TypeError, match="must be a frozen dataclass with slots and plain fields"):
            frozen_init(kind)
