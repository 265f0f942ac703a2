"""The environment: a pure function from states to states, over the compiled game."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from llenvs.core.action import Action
from llenvs.core.environment import Advance, Environment, EnvironmentSpec, Start, StepResult
from llenvs.core.errors import InvalidAction, InvalidOption, LLEnvsError, UnknownName, UpstreamFailed
from llenvs.core.extraction import make_extractor
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import Signal
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory
from llenvs_craftax.batch import Transitions, taken_at_once
from llenvs_craftax.commands import Understood, understand
from llenvs_craftax.game import KEY_MODES, Game, Outcome, game
from llenvs_craftax.hidden import BRANCHES, CraftaxHidden, checked, derived_branch
from llenvs_craftax.judging import Judge, achieved, ending
from llenvs_craftax.live import LiveState, LiveStates, LiveStats
from llenvs_craftax.options import ClassicOptions, FullOptions
from llenvs_craftax.sections import DamagedState, compressed, expanded
from llenvs_craftax.showing import Presenter
from llenvs_craftax.upstream import THREEFRY_PARTITIONABLE
from llenvs_craftax.variants import Entry

T = TypeVar("T")
_SHORT = 40  # characters of a response whose meaning is remembered


class UnknownAchievement(UnknownName):
    """No achievement of this name exists in the game."""

    kind = "achievement"


class CraftaxEnvironment(Environment[CraftaxHidden]):
    """Craftax or Craftax Classic: task i is the world of the option `seed` + i; a seed given to reset wins.

    Signals, whose total is the upstream's reward, bit for bit:
        health: what the change of health adds, 0.1 a point (in the upstream's float32).
        one of each achievement's name, with the upstream's weight: 1.0 when it is unlocked by this step. An
            achievement that is not is left out, except in a last step, where all are.

    Signals of the last step that are not counted:
        achieved: share of all achievements, by weight, that were unlocked; decides success, at 1.0, unless the
            option `goal` names an achievement: then
        goal: whether that was unlocked, does.
        score: (Classic) the geometric score of Crafter as the upstream computes it, from 0 to 100.

    The info of each state has `timestep`, `position` (row, column), `achievements`, `new_achievements`, `actions`
    (those taken), in the full game `floor`, after a response that was no action `invalid_action` (why), and at the
    end `ending` ("died", "lava", "won" or "time").
    """

    def __init__(self, name: str, entry: Entry, options: ClassicOptions | FullOptions) -> None:
        self._variant, self._options = entry.variant, options
        self._mode = options.observation_mode or entry.mode
        self._changes = {
            key: getattr(options, key)
            for key in ("max_timesteps", "day_length", "always_diamond", "god_mode")
            if hasattr(options, key)
        }
        spec = EnvironmentSpec(
            name,
            "craftax",
            max_steps=options.max_steps,
            is_multi_turn=True,
            supports_images=self._mode == "pixels",
            success_signal="achieved" if options.goal is None else "goal",
            description=entry.description,
            metadata={
                "craftax": version("craftax"),
                "jax": version("jax"),
                "threefry_partitionable": THREEFRY_PARTITIONABLE,
                "key_mode": options.key_mode,
                "parameters": self._changes,
            },
        )
        super().__init__(spec, reward_functions=make_reward_functions(options.extra_rewards))
        self._key_mode = KEY_MODES.index(options.key_mode)
        self._extractor = make_extractor(options.answer_extractor)
        self._understand_short = lru_cache(1024)(self._understand)  # most are the same few words
        self._live = LiveStates(options.max_live)
        self._transitions = Transitions()
        if options.goal is not None and options.goal not in self.achievements:
            raise UnknownAchievement(options.goal, list(self.achievements), "in the option goal")

    # -- what it is ---------------------------------------------------------------------------------------

    @property
    def num_tasks(self) -> int:
        """As the option `size` says."""
        return self._options.size

    @property
    def actions(self) -> tuple[str, ...]:
        """Names of all actions; the place is the number that may be given instead."""
        return self._game.upstream.actions

    @property
    def achievements(self) -> dict[str, float]:
        """All achievements with their weights in the reward."""
        upstream = self._game.upstream
        return dict(zip(upstream.achievements, upstream.weights, strict=True))

    @property
    def stats(self) -> LiveStats:
        """What is kept ready now, and how often that helped."""
        return self._live.stats

    # -- the contract -------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[State[CraftaxHidden], dict[str, Any]]:
        """See `Environment`. A seed is a world; without one, task i is the world of the option `seed` + i."""
        index = options.get("task_index") if isinstance(options, Mapping) else None
        if seed is None and type(index) is int and 0 <= index < self.num_tasks:
            seed = self._options.seed + index
        return super().reset(seed=seed, options=options)

    def close(self) -> None:
        """Drop the states that are kept ready. The compiled game stays, for others in this process."""
        self._live.clear()

    def fork(self, state: State[CraftaxHidden], n: int) -> list[Trajectory]:
        """See `Environment`; with the option `stochastic_branching` each of them meets other chance."""
        trajectories = super().fork(state, n)
        if not self._options.stochastic_branching:
            return trajectories
        hidden = self._checked(state)
        return [Trajectory(self.branch(state, derived_branch(hidden, number))) for number in range(n)]

    # -- beyond the contract ------------------------------------------------------------------------------

    def warmup(self) -> None:
        """Compile what reset, step and observations need, which else happens at their first use."""
        state, _ = self.reset(seed=0)
        self.step(state, Action("noop"))

    def symbolic_observation(self, state: State[CraftaxHidden]) -> np.ndarray[Any, Any]:
        """The upstream's symbolic observation of `state`: float32, shape (1345,) in Classic, (8268,) in full."""
        live = self._ready(self._checked(state))
        return self._safely("observing", lambda: self._game.observe(live.row))

    def arrays(self, state: State[CraftaxHidden]) -> dict[str, np.ndarray[Any, Any]]:
        """The upstream's state as numpy arrays by dotted names such as ``inventory.wood``, in its own types."""
        record = self._record(self._ready(self._checked(state)))
        return {leaf.name: leaf.read(record[leaf.name]) for leaf in self._game.layout.leaves}

    def branch(self, state: State[CraftaxHidden], number: int) -> State[CraftaxHidden]:
        """`state` with other luck: equal numbers meet the same chance, different ones different chance.

        Args:
            state: where the branch begins.
            number: 0 to 2**32 - 1; 0 is the luck of the seed.

        Raises:
            InvalidOption: `number` is none of these.
        """
        if type(number) is not int or not 0 <= number < BRANCHES:
            raise InvalidOption("number", number, "is no branch", valid=f"integers from 0 to {BRANCHES - 1}")
        return replace(state, hidden={**self._checked(state), "branch": number})

    def step_batch(self, states: Sequence[State[CraftaxHidden]], actions: Sequence[Action]) -> list[StepResult]:
        """`step` for each pair, in one run of the game: for many states faster than one by one.

        The results are those of `step`. There are programs for 8 and 64 states; each is compiled when first
        needed, and what does not fill one is padded.

        Args:
            states: any states of this game.
            actions: one for each.

        Raises:
            InvalidOption: not as many states as actions, or options that allow several actions in a response.
        """
        if len(states) != len(actions):
            raise InvalidOption("actions", len(actions), "must be as many as states", valid=str(len(states)))
        if self._options.max_actions > 1 or self._options.action_repeat > 1:
            problem = "must be 1 for step_batch, and so must action_repeat"
            raise InvalidOption("max_actions", self._options.max_actions, problem)
        wanted: dict[Any, tuple[CraftaxHidden, LiveState, int]] = {}
        for state, action in zip(states, actions, strict=True):
            self._check_step(state, action)
            understood = self._understood(action)
            if not understood.problem:
                hidden, number = self._checked(state), understood.actions[0]
                wanted[Transitions.key(hidden, number)] = hidden, self._ready(hidden), number
        outcomes = self._safely(
            "stepping a batch",
            lambda: taken_at_once(self._game, list(wanted.values()), self._key_mode, self._parameters),
        )
        with self._transitions.known(dict(zip(wanted, outcomes, strict=True))):
            return [self.step(state, action) for state, action in zip(states, actions, strict=True)]

    # -- what the contract asks for -----------------------------------------------------------------------

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        outcome = self._safely("making a world", lambda: self._game.reset(seed, self._parameters))
        live = self._kept(outcome)
        record = self._record(live)
        hidden: CraftaxHidden = {
            "variant": self._variant,
            "layout": self._game.layout.digest,
            "seed": seed,
            "branch": 0,
            "arrays": live.sections,
            "reward": 0.0,
            "unlocked": (),
        }
        observation = self._shown(lambda: self._presenter.observation(live, record))
        return Start(observation, hidden, self._info(record, ()))

    def _advance(self, state: State[CraftaxHidden], action: Action) -> Advance:
        hidden = self._checked(state)
        live = self._ready(hidden)
        understood = self._understood(action)
        if understood.problem:
            return self._refused(hidden, live, action, understood.problem)
        reward, taken, changed, outcome = 0.0, [], 0, None
        row = live.row
        for number in self._repeated(understood):
            outcome = self._taken(hidden, row, number)
            row = outcome.row
            reward += outcome.reward
            changed |= outcome.changed
            taken.append(self.actions[number])
            if outcome.done:
                break
        assert outcome is not None, "an understood response holds an action"
        before, live = self._record(live), self._kept(outcome, live, changed)
        after = self._record(live)
        unlocked = self._unlocked(before, after)
        why = ending(self._game.upstream, after) if outcome.done else None
        arrived: CraftaxHidden = {**hidden, "arrays": live.sections, "reward": reward, "unlocked": unlocked}
        observation = self._shown(lambda: self._presenter.observation(live, after, unlocked=unlocked, ending=why))
        info = {**self._info(after, unlocked), "actions": taken}
        if why is not None:
            info["ending"] = why
        return Advance(
            observation,
            arrived,
            terminated=why not in (None, "time"),
            truncated=why == "time",
            resolved_action=Action(", ".join(taken)),
            info=info,
        )

    def _refused(self, hidden: CraftaxHidden, live: LiveState, action: Action, problem: str) -> Advance:
        """A turn in which the game stands still."""
        record = self._record(live)
        stayed: CraftaxHidden = {**hidden, "reward": 0.0, "unlocked": ()}
        text = self._options.invalid_action_text
        return Advance(
            self._shown(lambda: self._presenter.observation(live, record, problem=problem)),
            stayed,
            resolved_action=Action(action.text if text is None else text),
            info={**self._info(record, ()), "actions": [], "invalid_action": problem},
        )

    def _signals(
        self, state: State[CraftaxHidden], action: Action, next_state: State[CraftaxHidden]
    ) -> Iterable[Signal]:
        hidden = self._checked(next_state)
        if not next_state.is_terminal:
            return self._judge.step(hidden["reward"], hidden["unlocked"])
        record = self._record(self._ready(hidden))
        return self._judge.last(hidden["reward"], hidden["unlocked"], achieved(self._game.upstream, record))

    # -- the game -----------------------------------------------------------------------------------------

    @cached_property
    def _game(self) -> Game:
        return self._safely("being imported", lambda: game(self._variant))

    @cached_property
    def _parameters(self) -> Any:
        return self._game.parameters(self._changes)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self._game.upstream, self._options.goal)

    @cached_property
    def _presenter(self) -> Presenter:
        return Presenter(self._game, self._mode, self._options)

    def _understood(self, action: Action) -> Understood:
        text = action.text
        return self._understand_short(text) if len(text) <= _SHORT else self._understand(text)

    def _understand(self, text: str) -> Understood:
        return understand(self._extractor.extract(text), self.actions, self._options.max_actions)

    def _repeated(self, understood: Understood) -> Iterable[int]:
        return (number for number in understood.actions for _ in range(self._options.action_repeat))

    def _taken(self, hidden: CraftaxHidden, row: Any, number: int) -> Outcome:
        known = self._transitions.get(hidden, number)
        if known is not None:
            return known
        return self._safely(
            "taking an action",
            lambda: self._game.step(
                row, hidden["seed"], number, self._key_mode, hidden["branch"], self._parameters
            ),
        )

    def _kept(self, outcome: Outcome, before: LiveState | None = None, changed: int = -1) -> LiveState:
        """`outcome` as it travels, ready for the next step; `changed` tells what differs from `before`."""
        sections = compressed(self._game, outcome.raw, {} if before is None else before.sections, changed)
        live = LiveState(outcome.row, outcome.raw, sections)
        self._live.put(live)
        return live

    def _ready(self, hidden: CraftaxHidden) -> LiveState:
        """The state, unpacked unless it is one of the newest.

        Raises:
            InvalidAction: it is damaged.
        """
        live = self._live.get(hidden["arrays"])
        if live is None:
            try:
                raw = self._game.padded(expanded(self._game, hidden["arrays"]))
            except DamagedState as error:
                raise InvalidAction(f"{self.spec.id}: this state is damaged: {error}") from None
            sections = {name: hidden["arrays"][name] for name in self._game.layout.sections}
            live = LiveState(raw, raw, sections)
            self._live.put(live)
        return live

    def _checked(self, state: State[CraftaxHidden]) -> CraftaxHidden:
        return checked(state.hidden, self._game, self.spec.id)

    def _record(self, live: LiveState) -> Any:
        return self._game.layout.record(live.raw)

    def _unlocked(self, before: Any, after: Any) -> tuple[str, ...]:
        new = after["achievements"] & (before["achievements"] ^ 1)
        if not new.any():
            return ()
        return tuple(self._game.upstream.achievements[place] for place in new.nonzero()[0])

    def _info(self, record: Any, unlocked: Sequence[str]) -> dict[str, Any]:
        info = {
            "timestep": int(record["timestep"]),
            "position": record["player_position"].tolist(),
            "achievements": list(achieved(self._game.upstream, record)),
            "new_achievements": list(unlocked),
        }
        if self._variant == "full":
            info["floor"] = int(record["player_level"])
        return info

    def _shown(self, work: Callable[[], T]) -> T:
        return self._safely("showing a state", work)

    def _safely(self, doing: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except LLEnvsError:
            raise
        except Exception as error:
            raise UpstreamFailed(self.spec.id, doing, error) from error
