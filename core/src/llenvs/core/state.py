"""States: values that can be stepped again at any time, anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from llenvs.core.encoding import canonical, dumps, loads, record
from llenvs.core.errors import EncodingFailed
from llenvs.core.observation import Observation

HiddenT = TypeVar("HiddenT")


@record
@dataclass(frozen=True, slots=True)
class SealedHidden:
    """Hidden state that its server alone can read (see `ContainerConfig.seal`).

    `data` is encrypted and authenticated together with the rest of the state, so that neither can be changed.
    """

    data: bytes


@record
@dataclass(frozen=True, slots=True)
class StateMetadata:
    """Where in its episode a state stands.

    Attributes:
        step: number of actions taken since reset.
        episode_id: equal for equal (environment, task, seed); not unique to a run.
        is_terminal: no action can be taken from here.
        info: what an environment reports about the state; a person may read it, a model does not.
    """

    step: int = 0
    episode_id: str = ""
    is_terminal: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


@record
@dataclass(frozen=True, slots=True, eq=False)
class State(Generic[HiddenT]):
    """One state of an episode: a frozen value.

    States are equal when their JSON is, types included (so with arrays and NaN too), and can be keys of a dict
    and items of a set; both take the time of one `to_json`.

    Attributes:
        observation: all that the model may see.
        hidden: ground truth and whatever else stepping needs. Plain data (see `llenvs.core.encoding`); type it
            with a `TypedDict`. To be treated as read-only: two states may share parts of it.
        metadata: step count, episode id, terminal flag, info.
    """

    observation: Observation
    hidden: HiddenT
    metadata: StateMetadata = field(default_factory=StateMetadata)

    @property
    def is_terminal(self) -> bool:
        """Whether the episode ends in this state."""
        return self.metadata.is_terminal

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return canonical(self) == canonical(other) if isinstance(other, State) else NotImplemented

    def __hash__(self) -> int:
        return hash(canonical(self))

    def to_json(self) -> str:
        """Exact JSON text of this state (tuples, sets, bytes, arrays and non-string keys survive).

        Raises:
            EncodingFailed: `hidden` holds something that is no plain data; the message names where.
        """
        return dumps(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> State[Any]:
        """The state that `to_json` wrote.

        Raises:
            EncodingFailed: `text` is not JSON of a state. Safe for untrusted text: nothing in it is executed.
        """
        state = loads(text)
        if not isinstance(state, State):
            raise EncodingFailed(f"expected an encoded State, got {type(state).__name__}")
        return state
