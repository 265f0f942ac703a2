"""The environment contract: states in, states out, nothing kept between calls."""

from __future__ import annotations

import asyncio
import json
import operator
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from llenvs.core.action import Action
from llenvs.core.closing import Closing
from llenvs.core.encoding import record
from llenvs.core.errors import EpisodeOver, InvalidAction, InvalidOption, TaskIndexOutOfRange, UnknownOption
from llenvs.core.frozen_init import frozen_init
from llenvs.core.observation import Observation
from llenvs.core.rewards import RewardFunction
from llenvs.core.signals import Signal, SignalBundle
from llenvs.core.state import HiddenT, State, StateMetadata
from llenvs.core.tools import ToolDefinition

if TYPE_CHECKING:
    from llenvs.core.trajectory import Trajectory


GROUND_TRUTH_KEYS = ("ground_truth", "expected_answer", "answer", "target")
"""Where `Environment.ground_truth` looks in a hidden state that is a mapping, in this order."""


@record
@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What an environment is, for whoever runs it.

    Attributes:
        name, adapter: together its address, ``adapter/name``.
        max_steps: the episode is truncated after so many actions; None for no limit of ours.
        is_multi_turn: whether an episode can have more than one action.
        deterministic: same state and action always give the same result.
        supports_tools, supports_images: whether observations may carry them.
        success_signal, success_threshold: an episode is a success when the signal of that name reaches the
            threshold; with None the environment declares no success.
        description: one line.
        metadata: versions and whatever else identifies the tasks.
    """

    name: str
    adapter: str
    max_steps: int | None = 1
    is_multi_turn: bool = False
    deterministic: bool = True
    supports_tools: bool = False
    supports_images: bool = False
    success_signal: str | None = None
    success_threshold: float = 1.0
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """``adapter/name``, as `llenvs.make` takes it."""
        return f"{self.adapter}/{self.name}"

    def is_success(self, rewards: SignalBundle) -> bool | None:
        """Whether `rewards` of a step declare success; None when the signal is absent or has no number."""
        if self.success_signal is None:
            return None
        signal = rewards.by_name(self.success_signal)
        if signal is None or signal.reward is None:
            return None
        return signal.reward >= self.success_threshold


@record
@dataclass(frozen=True, slots=True)
class StepResult:
    """What `Environment.step` gives.

    Attributes:
        next_state: the state after the action.
        rewards: signals of this step.
        terminated: the benchmark ended the episode.
        truncated: a limit ended it.
        resolved_action: what was understood (e.g. the extracted answer); None when nothing was.
        info: for people and logs.
    """

    next_state: State[Any]
    rewards: SignalBundle = field(default_factory=SignalBundle)
    terminated: bool = False
    truncated: bool = False
    resolved_action: Action | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Terminated or truncated."""
        return self.terminated or self.truncated


@frozen_init
@dataclass(frozen=True, slots=True)
class Start:
    """What an environment's `_start` returns: the first observation and the hidden state."""

    observation: Observation
    hidden: Any
    info: Mapping[str, Any] = field(default_factory=dict)


@frozen_init
@dataclass(frozen=True, slots=True)
class Advance:
    """What an environment's `_advance` returns: what the action led to."""

    observation: Observation
    hidden: Any
    terminated: bool = False
    truncated: bool = False
    resolved_action: Action | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, result: StepResult) -> Advance:
        """What a whole step led to, for environments that override `step`."""
        after = result.next_state
        return cls(
            after.observation,
            after.hidden,
            result.terminated,
            result.truncated,
            result.resolved_action,
            result.info,
        )


@dataclass(frozen=True, slots=True)
class EnvironmentOrigin:
    """What `environment_registry.get` made an environment from, so that another process can make the same.

    Attributes:
        address: ``adapter/name``.
        options: of the environment, as they were given.
        container: where it runs instead of in the process, as it was given.
    """

    address: str
    options: Mapping[str, Any] = field(default_factory=dict)
    container: Any = None


class Environment(Closing, ABC, Generic[HiddenT]):
    """A stateless environment: `step` depends on its arguments alone.

    Whoever writes one gives `spec`, `num_tasks`, `_start`, `_advance` and `_signals`; the rest is here, so that
    every environment treats task indices, seeds, limits, terminal states and extra rewards alike. All methods
    may be called from several threads at once.
    """

    reset_options: ClassVar[tuple[str, ...]] = ("task_index",)
    """Keys that `reset(options=...)` takes."""

    origin: EnvironmentOrigin | None = None
    """How the registry made it; None for one that was made by hand."""

    def __init__(self, spec: EnvironmentSpec, *, reward_functions: Iterable[RewardFunction] = ()) -> None:
        self._spec = spec
        self._reward_functions = tuple(reward_functions)

    # -- what an environment is ---------------------------------------------------------------------------

    @property
    def spec(self) -> EnvironmentSpec:
        """What this environment is."""
        return self._spec

    @property
    @abstractmethod
    def num_tasks(self) -> int:
        """Number of tasks; a task index is in ``0 <= i < num_tasks``."""

    def __len__(self) -> int:
        return self.num_tasks

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """Tools that observations of this environment may offer."""
        return ()

    @property
    def reward_functions(self) -> tuple[RewardFunction, ...]:
        """Reward functions added to the environment's own signals."""
        return self._reward_functions

    # -- the contract -------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[State[HiddenT], dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: chooses the task (unless given) and everything random in the episode. Equal seeds give equal
                states. None: a fresh one (0 when a task is given), reported in the info.
            options: ``{"task_index": i}`` picks task i of ``len(env)``.

        Returns:
            The first state and an info dict with ``task_index`` and ``seed``.

        Raises:
            TaskIndexOutOfRange: the index is not one of the tasks.
            UnknownOption: a key of `options` that this environment lacks.
            InvalidOption: a seed or index that is no integer.
        """
        given = {} if options is None else self._checked_options(options)
        if seed is not None:
            seed = _integer("seed", seed)
        task_index = given.pop("task_index", None)
        size = self.num_tasks
        if task_index is None:
            if size < 1:
                raise TaskIndexOutOfRange(None, size, self.spec.id)
            seed = random.SystemRandom().getrandbits(32) if seed is None else seed
            task_index = random.Random(seed).randrange(size)
        else:
            task_index = _integer("task_index", task_index)
            if not 0 <= task_index < size:
                raise TaskIndexOutOfRange(task_index, size, self.spec.id)
            seed = 0 if seed is None else seed
        start = self._start(task_index, seed, given)
        info = {"task_index": task_index, "seed": seed, **start.info}
        metadata = StateMetadata(0, f"{self.spec.id}#{task_index}@{seed}", False, info)
        return State(start.observation, start.hidden, metadata), dict(info)

    def step(self, state: State[HiddenT], action: Action) -> StepResult:
        """Take `action` in `state`, which stays as it is and can be stepped again.

        Raises:
            EpisodeOver: `state` is terminal.
            InvalidAction: `action` is no `Action`.
            UpstreamFailed: the benchmark's own code failed.
        """
        self._check_step(state, action)
        advance = self._advance(state, action)
        before = state.metadata
        step = before.step + 1
        limit = self.spec.max_steps
        terminated = bool(advance.terminated)  # an upstream may give numpy's
        truncated = bool(advance.truncated) or (limit is not None and step >= limit and not terminated)
        metadata = StateMetadata(
            step,
            before.episode_id,
            terminated or truncated,
            {**before.info, **advance.info} if advance.info else before.info,
        )
        next_state: State[HiddenT] = State(advance.observation, advance.hidden, metadata)
        rewards = self.compute_rewards(state, action, next_state)
        return StepResult(next_state, rewards, terminated, truncated, advance.resolved_action, advance.info)

    def compute_rewards(self, state: State[HiddenT], action: Action, next_state: State[HiddenT]) -> SignalBundle:
        """The signals of a step already taken; equal to those that `step` gave."""
        return self._bundled(tuple(self._signals(state, action, next_state)), state, action, next_state)

    def fork(self, state: State[HiddenT], n: int) -> list[Trajectory]:
        """`n` trajectories that begin in `state`, each to go on by its own ``trajectory.step(env, action)``.

        Raises:
            InvalidOption: `n` is no positive integer.
        """
        from llenvs.core.trajectory import Trajectory

        if _integer("n", n) < 1:
            raise InvalidOption("n", n, "must be a positive integer")
        return [Trajectory(state) for _ in range(n)]

    def ground_truth(self, state: State[HiddenT]) -> str | None:
        """The right answer of the task of `state` as text, for people and trainers; None where there is not one.

        By default what the hidden state has under one of `GROUND_TRUTH_KEYS`.
        """
        hidden = state.hidden
        if isinstance(hidden, Mapping):
            for key in GROUND_TRUTH_KEYS:
                if hidden.get(key) is not None:
                    return _as_text(hidden[key])
        return None

    def close(self) -> None:
        """Free what the environment holds. May be called twice; nothing else may be called afterwards."""

    # -- async twins --------------------------------------------------------------------------------------

    async def areset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[State[HiddenT], dict[str, Any]]:
        """`reset` in a worker thread; natively async environments override it."""
        return await asyncio.to_thread(self.reset, seed=seed, options=options)

    async def astep(self, state: State[HiddenT], action: Action) -> StepResult:
        """`step` in a worker thread; natively async environments override it."""
        return await asyncio.to_thread(self.step, state, action)

    async def aclose(self) -> None:
        """`close` in a worker thread."""
        await asyncio.to_thread(self.close)

    # -- what a subclass gives ----------------------------------------------------------------------------

    @abstractmethod
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        """The beginning of task `task_index` (checked to be in range). Must be a function of its arguments."""

    @abstractmethod
    def _advance(self, state: State[HiddenT], action: Action) -> Advance:
        """What `action` leads to in the non-terminal `state`. Must not change `state` or anything in it."""

    @abstractmethod
    def _signals(self, state: State[HiddenT], action: Action, next_state: State[HiddenT]) -> Iterable[Signal]:
        """The benchmark's own signals for a step."""

    # -- the rest -----------------------------------------------------------------------------------------

    def _bundled(
        self, signals: tuple[Signal, ...], state: State[HiddenT], action: Action, next_state: State[HiddenT]
    ) -> SignalBundle:
        """The environment's own `signals` and those of the reward functions."""
        if not self._reward_functions:
            return SignalBundle(signals)
        added = tuple(f(state, action, next_state) for f in self._reward_functions)
        taken = {s.name for s in signals}.intersection(s.name for s in added)
        if taken:
            raise InvalidOption(
                "extra_rewards",
                sorted(taken)[0],
                f"the name of a reward function must differ from the signals of {self.spec.id} "
                f"({', '.join(s.name for s in signals)})",
            )
        return SignalBundle(signals + added)

    def _checked_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of what `reset` was given."""
        if not isinstance(options, (dict, Mapping)):  # asked of a dict, Mapping takes a while
            raise InvalidOption("options", options, "must be a mapping", valid=", ".join(self.reset_options))
        for key in options:
            if key not in self.reset_options:
                raise UnknownOption(key, self.reset_options, f"in reset(options=...) of {self.spec.id}")
        return dict(options)

    def _check_step(self, state: State[HiddenT], action: Action) -> None:
        if not isinstance(action, Action):
            raise InvalidAction(
                f"{self.spec.id}: step needs an Action, got {type(action).__name__}; for text use Action(text=...)"
            )
        if not isinstance(state, State):
            raise InvalidAction(
                f"{self.spec.id}: step needs a State, got {type(state).__name__}; "
                "note that reset returns (state, info)"
            )
        if state.metadata.is_terminal:
            raise EpisodeOver(
                f"{self.spec.id}: the episode is over after {state.metadata.step} step(s); "
                "call reset() or step an earlier state"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec.id}, {self.num_tasks} tasks>"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _integer(field_name: str, value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise InvalidOption(field_name, value, "must be an integer")
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidOption(field_name, value, "must be an integer") from None
