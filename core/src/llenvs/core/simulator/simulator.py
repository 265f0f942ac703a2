"""What an adapter writes about an upstream that is an object which changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, TypeVar

from llenvs.core.action import Action
from llenvs.core.observation import Observation
from llenvs.core.signals import Signal

T = TypeVar("T")


class Snapshots(Enum):
    """What `Simulator.save` gives."""

    NONE = "none"
    """nothing: the upstream cannot save; older states are reached by replay"""
    LOCAL = "local"
    """any object, good in this process: it is kept in the environment's bounded cache; None where a state cannot
    be saved, which is then reached by replay"""
    PORTABLE = "portable"
    """bytes that are small and mean the same in any process: they travel in the state, nothing is replayed"""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the upstream shows after it began or took an action.

    Attributes:
        observation: all that the model may see.
        signals: the upstream's own of this step; those of `start` are not used.
        terminated, truncated: the upstream ended the episode, or a limit of its own did.
        resolved_action: what the upstream understood, where it says so.
        info: for people and logs.
        truth: plain data that belongs into the hidden state (ground truth, counters of the adapter).
    """

    observation: Observation
    signals: tuple[Signal, ...] = ()
    terminated: bool = False
    truncated: bool = False
    resolved_action: Action | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Any] = field(default_factory=dict)


class Outside:
    """What the upstream hears from outside during one step: recorded when live, repeated in a replay.

    Whatever would not come back the same (a user simulator's line, the clock, a web page) is asked for through
    `ask`; the replies become part of the recipe.
    """

    def __init__(self, recorded: Sequence[Any] | None = None) -> None:
        self._pending = None if recorded is None else list(recorded)
        self._heard: list[Any] = []

    def ask(self, call: Callable[[], T]) -> T:
        """What `call` returns (plain data, see `llenvs.core.encoding`), or what it returned when first asked."""
        if self._pending is None:
            reply = call()
        elif self._pending:
            reply = self._pending.pop(0)
        else:
            raise AskedMore
        self._heard.append(reply)
        return reply

    @property
    def replies(self) -> tuple[Any, ...]:
        """All replies of this step in order."""
        return tuple(self._heard)

    @property
    def left(self) -> int:
        """Number of recorded replies that the replay did not ask for."""
        return len(self._pending or ())


class AskedMore(Exception):
    """A replay asked for a reply that was not recorded; the environment turns it into `ReplayDiverged`."""


class Simulator(ABC):
    """One live upstream: an object that changes with every call.

    It is used by one thread at a time, plays one episode after another, of any task, and is thrown away after any
    exception. An engine that may crash belongs into a child process, see `EngineProcess`.
    """

    snapshots: ClassVar[Snapshots] = Snapshots.NONE
    """What `save` gives."""

    @property
    def alive(self) -> bool:
        """Whether it can still be used: false once the engine behind it has died, maybe while it was idle."""
        return True

    outside: Outside
    """Set before each `start` and `act`; replies from outside are asked for through it."""

    @abstractmethod
    def start(self, task_index: int, seed: int) -> Frame:
        """Begin task `task_index`. The frame must be a function of the arguments (and of `outside`)."""

    @abstractmethod
    def act(self, action: Action) -> Frame:
        """Take `action` where the simulator stands. An action that the upstream refuses is no exception."""

    def save(self) -> Any:
        """All that decides what comes next: of the kind that `snapshots` says."""
        raise NotImplementedError(f"{type(self).__name__} saves no snapshots")

    def restore(self, snapshot: Any, task_index: int, seed: int) -> None:
        """Go where `save` gave `snapshot`: in an episode of this task and seed, maybe of another simulator.

        A portable snapshot may come from an untrusted client: check it.
        """
        raise NotImplementedError(f"{type(self).__name__} restores no snapshots")

    def snapshot_size(self, snapshot: Any) -> int:
        """Bytes that `snapshot` takes. To be overridden where it is not bytes."""
        if isinstance(snapshot, bytes):
            return len(snapshot)
        raise NotImplementedError(f"{type(self).__name__} must say how large its snapshots are: snapshot_size")

    def close(self) -> None:
        """Free what the simulator holds. Called once."""
