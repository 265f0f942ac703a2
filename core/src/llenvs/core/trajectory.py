"""Trajectories: the steps of an episode as a value that can be cut, branched and stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.encoding import dumps, loads, record
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import EncodingFailed, InvalidOption
from llenvs.core.generation import Generation
from llenvs.core.signals import SignalBundle
from llenvs.core.state import State


@record
@dataclass(frozen=True, slots=True)
class Transition:
    """One step: `action` taken in `state` led to `result.next_state`.

    `generation` is what the model produced for the action (tokens, logprobs), when a model did.
    `state` is None only inside the JSON of a trajectory, where it then is the state that the step before led to.
    """

    state: State[Any] | None
    action: Action
    result: StepResult
    generation: Generation | None = None

    @property
    def next_state(self) -> State[Any]:
        """The state after the step."""
        return self.result.next_state

    @property
    def rewards(self) -> SignalBundle:
        """The signals of the step."""
        return self.result.rewards


@record
@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A point of a trajectory to come back to: the state after `step` actions and the reward up to it."""

    step: int
    state: State[Any]
    cumulative_reward: float = 0.0


@record
@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode, or the beginning of one, from `initial_state` on. Frozen: `append` gives a new one."""

    initial_state: State[Any]
    transitions: tuple[Transition, ...] = field(default=())

    def append(self, action: Action, result: StepResult, generation: Generation | None = None) -> Trajectory:
        """This trajectory with one more step, taken in its final state."""
        transition = Transition(self.final_state, action, result, generation)
        return replace(self, transitions=(*self.transitions, transition))

    def step(self, env: Environment[Any], action: Action) -> Trajectory:
        """Take `action` in the final state of this trajectory and append what came of it."""
        return self.append(action, env.step(self.final_state, action))

    @property
    def states(self) -> tuple[State[Any], ...]:
        """All ``len(self) + 1`` states in order."""
        return (self.initial_state, *(t.result.next_state for t in self.transitions))

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions in order."""
        return tuple(t.action for t in self.transitions)

    @property
    def final_state(self) -> State[Any]:
        """The newest state."""
        return self.transitions[-1].result.next_state if self.transitions else self.initial_state

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.final_state.is_terminal

    @property
    def total_reward(self) -> float:
        """Sum of the step totals."""
        return float(sum(t.result.rewards.total for t in self.transitions))

    def checkpoint(self, step: int | None = None) -> Checkpoint:
        """The point after `step` actions (``0 <= step <= len(self)``; None: the end)."""
        step = self._checked(len(self.transitions) if step is None else step)
        reward = float(sum(t.result.rewards.total for t in self.transitions[:step]))
        return Checkpoint(step, self.states[step], reward)

    def branch(self, step: int | None = None) -> Trajectory:
        """The first `step` steps as a trajectory of its own, to go on differently from there."""
        step = self._checked(len(self.transitions) if step is None else step)
        return replace(self, transitions=self.transitions[:step])

    def _checked(self, step: int) -> int:
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= len(self.transitions):
            raise InvalidOption(
                "step", step, "is no step of this trajectory", valid=f"0 to {len(self.transitions)}"
            )
        return step

    def __len__(self) -> int:
        return len(self.transitions)

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.transitions)

    def to_json(self) -> str:
        """Exact JSON text; every state is written once."""
        before = self.states
        # a step taken elsewhere than in the state before it (a trajectory made by hand) keeps its own state
        written = (
            replace(t, state=None) if t.state is s else t
            for s, t in zip(before[:-1], self.transitions, strict=True)
        )
        return dumps(replace(self, transitions=tuple(written)))

    @classmethod
    def from_json(cls, text: str | bytes) -> Trajectory:
        """The trajectory that `to_json` wrote.

        Raises:
            EncodingFailed: `text` is not that.
        """
        loaded = loads(text)
        if not isinstance(loaded, Trajectory):
            raise EncodingFailed(f"expected an encoded Trajectory, got {type(loaded).__name__}")
        state, linked = loaded.initial_state, []
        for transition in loaded.transitions:
            linked.append(replace(transition, state=state) if transition.state is None else transition)
            state = transition.result.next_state
        return replace(loaded, transitions=tuple(linked))
