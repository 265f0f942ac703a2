"""Any simulator as a stateless environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict, TypeVar

from llenvs.core.action import Action
from llenvs.core.environment import Advance, Environment, EnvironmentSpec, Start
from llenvs.core.errors import (
    InvalidAction,
    LLEnvsError,
    ReplayDiverged,
    SimulatorCrashed,
    TaskIndexOutOfRange,
    UpstreamFailed,
)
from llenvs.core.rewards import RewardFunction
from llenvs.core.signals import Signal
from llenvs.core.simulator.cache import CacheLimits, SimulatorCache, SimulatorStats
from llenvs.core.simulator.recipe import Recipe, Turn, snapshot_key
from llenvs.core.simulator.simulator import AskedMore, Frame, Outside, Simulator, Snapshots
from llenvs.core.state import State

T = TypeVar("T")


class SimulatorHidden(TypedDict):
    """Hidden state of a simulator's environment.

    Attributes:
        recipe: task, seed and, unless `snapshot` makes them unnecessary, the turns so far.
        snapshot: the simulator's portable snapshot; None when it has none.
        signals: the upstream's own of the step that led here.
        truth: what the simulator put into `Frame.truth`.
    """

    recipe: Recipe
    snapshot: bytes | None
    signals: tuple[Signal, ...]
    truth: Mapping[str, Any]


class SimulatorEnvironment(Environment[SimulatorHidden]):
    """A stateless environment over an upstream that changes.

    The truth is in the state: its recipe, or its portable snapshot. Live simulators and local snapshots are a
    bounded cache. Stepping the newest state finds the simulator that stands there; an older one is reached from
    the nearest snapshot or simulator that is cached, by replaying (and checking) what lies between. An engine that
    crashes is replaced and the action taken again, once.

    Args:
        spec: what the environment is. `deterministic` must be true only if equal actions always give equal frames.
        make_simulator: makes a fresh simulator; called from any thread.
        num_tasks: number of tasks.
        snapshots: what the simulators save (their class attribute of this name).
        limits: bounds of the cache.
        reward_functions: added to the simulator's own signals.
    """

    def __init__(
        self,
        spec: EnvironmentSpec,
        make_simulator: Callable[[], Simulator],
        *,
        num_tasks: int,
        snapshots: Snapshots = Snapshots.NONE,
        limits: CacheLimits | None = None,
        reward_functions: Iterable[RewardFunction] = (),
    ) -> None:
        super().__init__(spec, reward_functions=reward_functions)
        self._num_tasks = num_tasks
        self._snapshots = snapshots
        self._cache = SimulatorCache(make_simulator, limits or CacheLimits())

    @property
    def num_tasks(self) -> int:
        """As given."""
        return self._num_tasks

    @property
    def stats(self) -> SimulatorStats:
        """What the cache holds now, and counts of what happened so far."""
        return self._cache.stats

    def close(self) -> None:
        """Close all simulators."""
        self._cache.close()

    # -- the contract -------------------------------------------------------------------------------------

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        def begin() -> Start:
            recipe = Recipe(self.spec.id, task_index, seed)
            with self._owned(self._any(task_index), f"starting task {task_index}") as simulator:
                simulator.outside = outside = Outside()
                frame = simulator.start(task_index, seed)
                hidden, key = self._arrived(simulator, recipe, None, frame, outside.replies)
            self._cache.put(simulator, key, task_index)
            return Start(frame.observation, hidden, frame.info)

        return self._with_second_try(begin)

    def _advance(self, state: State[SimulatorHidden], action: Action) -> Advance:
        hidden = self._checked(state)

        def take() -> Advance:
            with self._owned(self._standing_at(state), f"taking the action {_short(action)}") as simulator:
                simulator.outside = outside = Outside()
                frame = simulator.act(action)
                arrived, key = self._arrived(simulator, hidden["recipe"], action, frame, outside.replies)
            self._cache.put(simulator, key, hidden["recipe"].task_index)
            return Advance(
                frame.observation,
                arrived,
                frame.terminated,
                frame.truncated,
                frame.resolved_action,
                frame.info,
            )

        return self._with_second_try(take)

    def _signals(
        self, state: State[SimulatorHidden], action: Action, next_state: State[SimulatorHidden]
    ) -> Iterable[Signal]:
        return next_state.hidden["signals"]

    # -- from a state to a simulator and back -------------------------------------------------------------

    def _standing_at(self, state: State[SimulatorHidden]) -> Simulator:
        """A simulator that stands in `state`; the caller's alone."""
        recipe, snapshot = state.hidden["recipe"], state.hidden["snapshot"]
        if snapshot is not None:
            return self._cache.take(snapshot_key(recipe, snapshot)) or self._restored(recipe, snapshot)
        return self._cache.take(recipe.key) or self._replayed(recipe, state)

    def _restored(self, recipe: Recipe, snapshot: Any) -> Simulator:
        with self._owned(self._any(recipe.task_index), "restoring a snapshot") as simulator:
            simulator.restore(snapshot, recipe.task_index, recipe.seed)
        self._cache.count("restored")
        return simulator

    def _replayed(self, recipe: Recipe, state: State[SimulatorHidden]) -> Simulator:
        """From the nearest cached ancestor, or else from the beginning, checking every observation."""
        if [turn.action is None for turn in recipe.turns] != [True] + [False] * (len(recipe.turns) - 1):
            raise InvalidAction(f"{self.spec.id}: this state has no recipe that begins once, at its beginning")
        found = self._cache.nearest(recipe.keys_backwards())
        if found.has_snapshot:
            simulator = self._restored(recipe, found.snapshot)
        else:
            simulator = found.simulator or self._any(recipe.task_index)
        replayed = 0
        with self._owned(simulator, "replaying"):
            for number in range(found.turns, len(recipe.turns)):
                turn = recipe.turns[number]
                self._repeat(simulator, recipe, number, state)
                replayed += turn.action is not None
            if replayed and self._snapshots is Snapshots.LOCAL:  # whoever came once may come again
                self._keep(simulator, recipe)
        self._cache.count("replayed", replayed)
        return simulator

    def _keep(self, simulator: Simulator, recipe: Recipe) -> None:
        snapshot = simulator.save()
        if snapshot is not None:
            self._cache.keep(recipe.key, snapshot, simulator.snapshot_size(snapshot))

    def _repeat(self, simulator: Simulator, recipe: Recipe, number: int, state: State[SimulatorHidden]) -> None:
        turn = recipe.turns[number]
        last = number == len(recipe.turns) - 1
        recorded = state.observation.prompt if last else turn.excerpt
        simulator.outside = outside = Outside(turn.replies)
        try:
            if turn.action is None:
                frame = simulator.start(recipe.task_index, recipe.seed)
            else:
                frame = simulator.act(turn.action)
        except AskedMore:
            detail = f"it asked for more than the {len(turn.replies)} recorded replies from outside"
            raise ReplayDiverged(self.spec.id, number, recorded, "", detail) from None
        again = Turn.of(turn.action, frame.observation, turn.replies)
        shown = frame.observation.prompt if last else again.excerpt
        if again.observed != turn.observed:
            raise ReplayDiverged(self.spec.id, number, recorded, shown)
        if outside.left:
            detail = f"{outside.left} recorded replies from outside were not asked for"
            raise ReplayDiverged(self.spec.id, number, recorded, shown, detail)
        if not last and (frame.terminated or frame.truncated):
            raise ReplayDiverged(self.spec.id, number, recorded, shown, "the episode ended here")

    def _arrived(
        self, simulator: Simulator, recipe: Recipe, action: Action | None, frame: Frame, replies: tuple[Any, ...]
    ) -> tuple[SimulatorHidden, bytes]:
        """The hidden state after `action`, and the key under which the cache finds `simulator` there."""
        snapshot: bytes | None = None
        if self._snapshots is Snapshots.PORTABLE:
            snapshot = simulator.save()
            assert isinstance(snapshot, bytes), "a portable snapshot must be bytes"
            key = snapshot_key(recipe, snapshot)
        else:
            recipe = recipe.extended(Turn.of(action, frame.observation, replies))
            key = recipe.key
            due = (len(recipe.turns) - 1) % self._cache.limits.snapshot_every == 0
            if self._snapshots is Snapshots.LOCAL and due and not (frame.terminated or frame.truncated):
                self._keep(simulator, recipe)
        return {"recipe": recipe, "snapshot": snapshot, "signals": frame.signals, "truth": frame.truth}, key

    def _any(self, task_index: int) -> Simulator:
        try:
            return self._cache.any(task_index, self._snapshots)
        except LLEnvsError:
            raise
        except Exception as error:
            raise UpstreamFailed(self.spec.id, "making a simulator", error) from error

    @contextmanager
    def _owned(self, simulator: Simulator, doing: str) -> Iterator[Simulator]:
        """Throws `simulator` away after any error: nobody knows where it stands."""
        try:
            yield simulator
        except BaseException as error:
            self._cache.discard(simulator)
            if isinstance(error, LLEnvsError) or not isinstance(error, Exception):
                raise
            raise UpstreamFailed(self.spec.id, doing, error) from error

    def _with_second_try(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except SimulatorCrashed as crash:
            self._cache.count("crashed")
            if crash.timed_out:
                raise
        # it may have died while idle, or for want of memory, and others with it; what dies twice is to blame
        self._cache.discard_dead()
        try:
            return work()
        except SimulatorCrashed:
            self._cache.count("crashed")
            raise

    def _checked(self, state: State[SimulatorHidden]) -> SimulatorHidden:
        """The hidden state, which may come from anywhere."""
        hidden = state.hidden
        recipe = hidden.get("recipe") if isinstance(hidden, Mapping) else None
        if not isinstance(recipe, Recipe) or recipe.environment != self.spec.id:
            whose = recipe.environment if isinstance(recipe, Recipe) else "another kind of environment"
            raise InvalidAction(f"{self.spec.id}: this state belongs to {whose}")
        if not 0 <= recipe.task_index < self.num_tasks:
            raise TaskIndexOutOfRange(recipe.task_index, self.num_tasks, self.spec.id)
        portable = self._snapshots is Snapshots.PORTABLE
        kept = bytes if portable else type(None)
        if not isinstance(hidden.get("snapshot"), kept) or not (portable or recipe.turns):
            raise InvalidAction(f"{self.spec.id}: this state is incomplete and cannot be reached again")
        return hidden


def _short(action: Action) -> str:
    calls = ", ".join(call.name for call in action.tool_calls)
    text = calls if calls and not action.text else repr(action.text)
    return text if len(text) <= 80 else f"{text[:77]}..."
