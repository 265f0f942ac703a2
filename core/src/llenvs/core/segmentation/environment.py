"""An environment whose actions are the segments of a response to another environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Advance, Environment, EnvironmentSpec, Start, StepResult
from llenvs.core.errors import InvalidAction, InvalidOption, ReplayDiverged
from llenvs.core.rewards import CallableReward, RewardFunction, make_reward_functions
from llenvs.core.segmentation.control import RESERVED, Segment, final_segment
from llenvs.core.segmentation.replay import Replay
from llenvs.core.segmentation.response import Response, SegmentedHidden, hidden_of, is_segmented
from llenvs.core.segmentation.segmenter import Segmenter, checked_segmenter, cut
from llenvs.core.signals import RewardType, Signal, SignalBundle
from llenvs.core.state import State, StateMetadata
from llenvs.core.tools import ToolDefinition
from llenvs.core.trajectory import Trajectory, Transition

DEFAULT_MAX_SEGMENTS = 256

Step = tuple[State[Any] | None, Action] | Transition
"""A step to be replayed: an action and the state that it was taken in (None: not known, and not checked)."""


class SegmentedEnvironment(Environment[SegmentedHidden]):
    """Takes the responses of any environment segment by segment.

    An action is one segment. The last one is made by `final`; tool calls end a response too, and so does an action
    that says nothing. Then the base environment is given the whole response: its signals are those of the last
    segment, and its next observation begins the next response. Until then a step has the signals of
    `reward_functions` alone.

    In the middle of a response the observation is that of the base environment, with the chat in ``messages``: its
    last message is the assistant's and not ended. At its beginning it is the base environment's, unchanged.

    Args:
        base_env: any environment, multi-turn ones and tools included. It is closed with this one.
        segmenter: divides whole responses, for `replay` and for runners. A step takes its action as one segment,
            whatever it holds.
        reward_functions: judge every segment: called with the state before it, its text (and tool calls) as the
            action, and the state after it. A plain function counts as a process reward.
        max_segments: actions in one response at most, >= 1; the last one allowed ends it.

    Raises:
        InvalidOption: naming the argument.
    """

    def __init__(
        self,
        base_env: Environment[Any],
        segmenter: Segmenter,
        *,
        reward_functions: Iterable[RewardFunction | Callable[..., Any]] | RewardFunction | Callable[..., Any] = (),
        max_segments: int = DEFAULT_MAX_SEGMENTS,
    ) -> None:
        if not isinstance(base_env, Environment):
            raise InvalidOption("base_env", base_env, "must be an Environment; make one with llenvs.make(...)")
        if isinstance(base_env, SegmentedEnvironment):
            raise InvalidOption(
                "base_env", base_env, "is segmented already; for two segmenters use CompositeSegmenter"
            )
        if isinstance(max_segments, bool) or not isinstance(max_segments, int) or max_segments < 1:
            raise InvalidOption("max_segments", max_segments, "must be a positive integer")
        reserved = [tool.name for tool in base_env.available_tools if tool.name.startswith(RESERVED)]
        if reserved:
            raise InvalidOption("base_env", reserved[0], f"has a tool whose name begins with {RESERVED!r}")
        self.segmenter = checked_segmenter(segmenter)
        super().__init__(
            _spec(base_env.spec, self.segmenter, max_segments), reward_functions=_process(reward_functions)
        )
        self.base_env = base_env
        self.max_segments = max_segments
        self.reset_options = base_env.reset_options  # type: ignore[misc]

    @property
    def num_tasks(self) -> int:
        """Those of the base environment."""
        return len(self.base_env)

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """Those of the base environment."""
        return self.base_env.available_tools

    def close(self) -> None:
        """Close the base environment."""
        self.base_env.close()

    # -- actions ------------------------------------------------------------------------------------------

    final = staticmethod(final_segment)

    def begin(self, base_state: State[Any]) -> State[SegmentedHidden]:
        """The state in which a response to `base_state`, a state of the base environment, begins.

        The chat before it is taken from the observation, so in the middle of an episode it holds this turn alone
        unless the environment records its chat; `replay` with a whole trajectory has all of it.

        Raises:
            InvalidAction: `base_state` is no state, or one of a `SegmentedEnvironment` already.
        """
        if is_segmented(base_state):
            raise InvalidAction(f"the state {base_state.metadata.episode_id} is segmented already")
        response = Response.beginning(base_state)
        metadata = base_state.metadata
        own_id = self.spec.id + metadata.episode_id.removeprefix(self.base_env.spec.id)
        return State(
            base_state.observation,
            response.hidden(base_state),
            replace(metadata, step=0, episode_id=own_id),
        )

    @staticmethod
    def base_state(state: State[SegmentedHidden]) -> State[Any]:
        """The base environment's state to which a response is being written in `state`.

        Raises:
            InvalidAction: `state` is another environment's.
        """
        return hidden_of(state)["base"]

    @staticmethod
    def response(state: State[SegmentedHidden]) -> Response:
        """The response as far as it is written in `state`.

        Raises:
            InvalidAction: `state` is another environment's.
        """
        return Response.of(state)

    def ground_truth(self, state: State[SegmentedHidden]) -> str | None:
        """The base environment's.

        Raises:
            InvalidAction: `state` is another environment's.
        """
        return self.base_env.ground_truth(hidden_of(state)["base"])

    # -- the contract -------------------------------------------------------------------------------------

    def step(self, state: State[SegmentedHidden], action: Action) -> StepResult:
        """Take one segment.

        Raises:
            EpisodeOver: `state` is terminal.
            InvalidAction: `action` is no `Action`, or `state` none of this environment.
            UpstreamFailed: the benchmark's own code failed.
        """
        self._check_step(state, action)
        segment, before = self._read(state, action)
        base = hidden_of(state)["base"]
        count = state.metadata.step + 1
        if not segment.ends:
            written = before.after(segment)
            next_state: State[SegmentedHidden] = State(
                written.observation(base.observation),
                written.hidden(base),
                StateMetadata(count, state.metadata.episode_id, False, state.metadata.info),
            )
            return StepResult(next_state, self._judged(SignalBundle(), segment, state, next_state))
        result = self.base_env.step(base, before.base_action(segment))
        after = result.next_state
        next_state = State(
            after.observation,
            before.next_turn(segment, after.observation).hidden(after),
            StateMetadata(count, state.metadata.episode_id, result.done, after.metadata.info),
        )
        rewards = self._judged(result.rewards, segment, state, next_state)
        return replace(result, next_state=next_state, rewards=rewards)

    def compute_rewards(
        self, state: State[SegmentedHidden], action: Action, next_state: State[SegmentedHidden]
    ) -> SignalBundle:
        """See `Environment.compute_rewards`."""
        segment, _ = self._read(state, action)
        own = SignalBundle(tuple(self._signals(state, action, next_state)))
        return self._judged(own, segment, state, next_state)

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        base, info = self.base_env.reset(seed=seed, options={**options, "task_index": task_index})
        return Start(base.observation, Response.beginning(base).hidden(base), info)

    def _advance(self, state: State[SegmentedHidden], action: Action) -> Advance:
        return Advance.of(self.step(state, action))

    def _signals(
        self, state: State[SegmentedHidden], action: Action, next_state: State[SegmentedHidden]
    ) -> Iterable[Signal]:
        segment, before = self._read(state, action)
        if not segment.ends:
            return ()
        base, after = hidden_of(state)["base"], hidden_of(next_state)["base"]
        return self.base_env.compute_rewards(base, before.base_action(segment), after)

    def _read(self, state: State[SegmentedHidden], action: Action) -> tuple[Segment, Response]:
        """What `action` means in `state`, the limit on segments included, and the response before it."""
        segment, before = Segment.of(action), Response.of(state)
        if before.actions + 1 >= self.max_segments:
            segment = replace(segment, ends=True, feedback=None)
        return segment, before

    def _judged(
        self,
        own: SignalBundle,
        segment: Segment,
        state: State[SegmentedHidden],
        next_state: State[SegmentedHidden],
    ) -> SignalBundle:
        """`own` and the signals of the reward functions, which have no number where there is no segment."""
        if not segment.text and not segment.tool_calls:
            return own.extended(
                Signal(f.name, f.reward_type, None, weight=f.weight) for f in self.reward_functions
            )
        return self._bundled(own.signals, state, segment.action, next_state)

    # -- replay -------------------------------------------------------------------------------------------

    def replay(
        self,
        state: State[Any],
        response: str | Action | Trajectory | Iterable[Step],
        *,
        end: bool = True,
    ) -> Replay:
        """Take steps that are known already, from `state` on.

        Args:
            state: where they begin: a state of this environment, also in the middle of a response, or one of the
                base environment.
            response: a text, or an action with tool calls, which goes on from what is said in `state` and is
                divided by the segmenter; or pairs of states and actions (a trajectory has them). Pairs of this
                environment are taken as they are; in pairs of the base environment every action is a whole
                response.
            end: whether a text is the whole response; False leaves it open, to be gone on with.

        Returns:
            The result of each step, and the trajectory.

        Raises:
            ReplayDiverged: a state of the pairs is not the one that was reached.
            EpisodeOver: there is more than the episode takes.
            InvalidAction: `state` or `response` is none of these.
        """
        if not is_segmented(state):
            state = self.begin(state)
        trajectory = Trajectory(state)
        if isinstance(response, str):
            response = Action(response)
        if isinstance(response, Action):
            return Replay(self._replayed(trajectory, response, end))
        for expected, action in _pairs(response):
            if expected is None or is_segmented(expected):
                if expected is not None:
                    self._check_reached(trajectory, trajectory.final_state, expected)
                trajectory = trajectory.step(self, action)
            else:
                self._check_reached(trajectory, hidden_of(trajectory.final_state)["base"], expected)
                trajectory = self._replayed(trajectory, action, end=True)
        return Replay(trajectory)

    def segments(self, state: State[SegmentedHidden], text: str) -> tuple[str, ...]:
        """The segments of `text` as it goes on from what is said in `state`.

        Raises:
            InvalidAction: `state` is another environment's.
            InvalidOption: `text` is no `str`.
        """
        if not isinstance(text, str):
            raise InvalidOption("text", text, "must be a str to be divided into segments")
        said = Response.of(state).text
        boundaries = self.segmenter.boundaries_after(len(said), said + text)
        return cut(text, [b - len(said) for b in boundaries])

    def actions(
        self, state: State[SegmentedHidden], response: str | Action, *, end: bool = True
    ) -> tuple[Action, ...]:
        """The actions by which `response` is given from `state` on: what `replay` takes.

        Args:
            state: of this environment, at the beginning or in the middle of a response.
            response: a text, or an action with tool calls.
            end: whether a text is the whole response; False leaves it open.

        Returns:
            An action for each segment, the last one with all that `max_segments` leaves no room for.

        Raises:
            InvalidAction: `state` is another environment's.
            InvalidOption: `response` is no text.
        """
        text, calls = (response.text, response.tool_calls) if isinstance(response, Action) else (response, ())
        segments = list(self.segments(state, text))
        ends = end or bool(calls)
        room = self.max_segments - Response.of(state).actions - (not ends)
        if len(segments) > max(1, room):
            kept = max(1, room) - 1
            segments = [*segments[:kept], "".join(segments[kept:])]
        last = segments.pop() if segments and ends else ""
        said = tuple(Action(segment) for segment in segments)
        return (*said, final_segment(last, calls)) if ends else said

    def _replayed(self, trajectory: Trajectory, response: Action, end: bool) -> Trajectory:
        for action in self.actions(trajectory.final_state, response, end=end):
            trajectory = trajectory.step(self, action)
        return trajectory

    def _check_reached(self, trajectory: Trajectory, reached: State[Any], expected: State[Any]) -> None:
        if reached is expected or reached == expected:
            return
        recorded, found = expected.observation.prompt[:200], reached.observation.prompt[:200]
        problem = "a state of the pairs is not the one reached"
        raise ReplayDiverged(self.spec.id, len(trajectory), recorded, found, problem)

    # -- back to the base environment ---------------------------------------------------------------------

    def base_trajectory(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory of the base environment in which `trajectory` of this one ends whole responses.

        The segments of a response that is not ended are left out, and so are the signals of `reward_functions`.

        Raises:
            InvalidAction: it is no trajectory of a `SegmentedEnvironment`.
        """
        from llenvs.core.segmentation.generations import joined

        if not isinstance(trajectory, Trajectory):
            raise InvalidAction(f"a Trajectory is needed, got {type(trajectory).__name__}")
        added = {function.name for function in self.reward_functions}
        base = Trajectory(hidden_of(trajectory.initial_state)["base"])
        parts: list[Transition] = []
        for transition in trajectory:
            parts.append(transition)
            state = transition.state
            if state is None:
                continue
            segment, before = self._read(state, transition.action)
            if not segment.ends:
                continue
            result = replace(
                transition.result,
                next_state=hidden_of(transition.next_state)["base"],
                rewards=SignalBundle(tuple(s for s in transition.rewards if s.name not in added)),
            )
            base = base.append(before.base_action(segment), result, joined(parts))
            parts = []
        return base


def _pairs(
    given: Trajectory | Iterable[Step],
) -> Iterator[tuple[State[Any] | None, Action]]:
    try:
        items = iter(given)
    except TypeError:
        raise InvalidAction(
            f"replay needs a text, an Action, a Trajectory or pairs of states and actions, "
            f"got {type(given).__name__}"
        ) from None
    for number, item in enumerate(items):
        pair = (item.state, item.action) if isinstance(item, Transition) else item
        match pair:
            case (State() | None as state, Action() as action):
                yield state, action
            case _:
                raise InvalidAction(f"item {number} of a replay must be a pair (state, action), got {item!r:.100}")


def _process(given: Any) -> tuple[RewardFunction, ...]:
    """Reward functions, plain functions among them as process rewards.

    Raises:
        InvalidOption, UnknownRewardFunction, UnknownOption: naming `reward_functions`.
    """
    try:
        return make_reward_functions(_with_process_rewards(given))
    except InvalidOption as error:
        field = "reward_functions" + error.field.removeprefix("extra_rewards")
        raise InvalidOption(field, error.value, error.problem, valid=error.valid) from None


def _with_process_rewards(given: Any) -> Any:
    """`given`, in which every plain function became a process reward."""
    if isinstance(given, RewardFunction | str | Mapping) or callable(given):
        given = [given]
    if not isinstance(given, Iterable):
        return given
    return [
        CallableReward(each, reward_type=RewardType.PROCESS)
        if callable(each) and not isinstance(each, RewardFunction | type)
        else each
        for each in given
    ]


def _spec(base: EnvironmentSpec, segmenter: Segmenter, max_segments: int) -> EnvironmentSpec:
    return replace(
        base,
        name=f"{base.name}[{segmenter.name}]",
        max_steps=None if base.max_steps is None else base.max_steps * max_segments,
        is_multi_turn=base.is_multi_turn or max_segments > 1,
        description=f"{base.description or base.name}, by {segmenter.name}",
        metadata={
            **base.metadata,
            "segmentation": {"base": base.id, "segmenter": repr(segmenter), "max_segments": max_segments},
        },
    )
