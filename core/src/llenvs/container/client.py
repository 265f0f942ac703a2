"""The environment behind servers, as the client sees it: an `Environment` like any other."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from llenvs.container.errors import RequestRefused, StateMissing
from llenvs.container.known_states import KnownStates
from llenvs.container.replicas import Replicas
from llenvs.container.wire import (
    PROTOCOL,
    Description,
    read_description,
    read_reset,
    read_rewards,
    read_step,
)
from llenvs.core.action import Action
from llenvs.core.encoding import dumps
from llenvs.core.environment import Advance, Environment, Start, StepResult
from llenvs.core.errors import ContainerFailed, EncodingFailed, InvalidOption, UnknownOption
from llenvs.core.loop import run_sync
from llenvs.core.rewards import RewardFunction
from llenvs.core.signals import Signal, SignalBundle
from llenvs.core.state import State
from llenvs.core.tools import ToolDefinition

T = TypeVar("T")


class ContainerEnvironment(Environment[Any]):
    """An environment that runs in other processes; answers and errors are those of the environment itself.

    Its async methods are native: hundreds of steps can be in flight. `reward_functions` are applied here, after
    the environment's own signals.
    """

    def __init__(
        self, replicas: Replicas, description: Description, *, reward_functions: Iterable[RewardFunction] = ()
    ) -> None:
        super().__init__(description.spec, reward_functions=reward_functions)
        self._replicas = replicas
        self._description = description
        self._known = KnownStates()

    @classmethod
    async def connect(
        cls, replicas: Replicas, *, reward_functions: Iterable[RewardFunction] = ()
    ) -> ContainerEnvironment:
        """The environment that `replicas` serve.

        Raises:
            ContainerFailed: they cannot be reached, or speak another version of the protocol.
        """
        answer, _ = await replicas.request('"op":"describe"')
        if not isinstance(answer, Mapping) or answer.get("protocol") != PROTOCOL:
            spoken = answer.get("protocol") if isinstance(answer, Mapping) else None
            raise ContainerFailed(
                f"the server speaks version {spoken!r} of the protocol, this client version {PROTOCOL}; "
                "install the same version of llenvs on both sides"
            )
        try:
            description = read_description(answer)
        except (TypeError, EncodingFailed) as error:
            raise ContainerFailed(f"the server's description of itself makes no sense: {error!r}") from None
        return cls(replicas, description, reward_functions=reward_functions)

    # -- what it is ---------------------------------------------------------------------------------------

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return self._description.num_tasks

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """Tools that observations may offer."""
        return self._description.tools

    @property
    def server_versions(self) -> Mapping[str, Any]:
        """What the environment is made of where it runs: `llenvs.core.versions.made_of` there."""
        return self._description.versions

    @property
    def is_sealed(self) -> bool:
        """Whether hidden state comes encrypted."""
        return self._description.sealed

    # -- async, the native form ---------------------------------------------------------------------------

    async def areset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[State[Any], dict[str, Any]]:
        """See `Environment.reset`."""
        fields = f'"op":"reset",{self._reset_fields(seed, options)}'
        answer, holder = await self._replicas.request(self._checked(fields))
        state, info = self._read(read_reset, answer)
        self._known.remember(state, answer["key"], holder)
        return state, info

    async def astep(self, state: State[Any], action: Action) -> StepResult:
        """See `Environment.step`."""
        self._check_step(state, action)
        rest = f'"action":{dumps(action)},"share_hidden":true'
        answer, holder = await self._with_state("step", state, rest)
        result = self._read(read_step, answer, state)
        self._known.remember(result.next_state, answer["key"], holder)
        self._known.remember(state, answer.get("state_key"), holder)
        return self._rewarded(state, action, result)

    async def astep_batch(self, states: Sequence[State[Any]], actions: Sequence[Action]) -> list[StepResult]:
        """Step many states at once, spread over the replicas.

        Raises:
            InvalidOption: not one action for each state.
            LLEnvsError: the first error, once all steps have ended.
        """
        if len(states) != len(actions):
            raise InvalidOption("actions", len(actions), "must be as many as states", valid=str(len(states)))
        results = await asyncio.gather(
            *(self.astep(state, action) for state, action in zip(states, actions, strict=True)),
            return_exceptions=True,
        )
        done = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            done.append(result)
        return done

    async def acompute_rewards(self, state: State[Any], action: Action, next_state: State[Any]) -> SignalBundle:
        """See `Environment.compute_rewards`."""
        rest = f'"action":{dumps(action)},"next_state":{dumps(next_state)}'
        answer, _ = await self._with_state("compute_rewards", state, rest)
        rewards = self._read(read_rewards, answer)
        return self._bundled(rewards.signals, state, action, next_state)

    async def aclose(self) -> None:
        """End the servers that were started for this environment."""
        self._known.clear()
        await self._replicas.aclose()

    # -- sync ---------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[State[Any], dict[str, Any]]:
        """See `Environment.reset`."""
        return run_sync(self.areset(seed=seed, options=options))

    def step(self, state: State[Any], action: Action) -> StepResult:
        """See `Environment.step`."""
        return run_sync(self.astep(state, action))

    def step_batch(self, states: Sequence[State[Any]], actions: Sequence[Action]) -> list[StepResult]:
        """See `astep_batch`."""
        return run_sync(self.astep_batch(states, actions))

    def compute_rewards(self, state: State[Any], action: Action, next_state: State[Any]) -> SignalBundle:
        """See `Environment.compute_rewards`."""
        return run_sync(self.acompute_rewards(state, action, next_state))

    def close(self) -> None:
        """See `aclose`."""
        run_sync(self.aclose())

    # -- requests -----------------------------------------------------------------------------------------

    async def _with_state(self, op: str, state: State[Any], rest: str) -> tuple[Any, int]:
        """A request that names `state` where the replica holds it, and carries it where not."""
        known = self._known.find(state)
        whole: str | None = None

        def fields(replica: int | None) -> str:
            nonlocal whole
            if known is not None and known.holder == replica:
                return self._checked(f'"op":"{op}","key":"{known.key}",{rest}')
            if whole is None:
                whole = self._checked(f'"op":"{op}","state":{dumps(state)},{rest}')
            return whole

        try:
            return await self._replicas.request(fields, known.holder if known is not None else None)
        except StateMissing:
            self._known.forget(state)
            known = None
            return await self._replicas.request(fields)

    def _read(self, read: Callable[..., T], *arguments: Any) -> T:
        try:
            return read(*arguments)
        except (LookupError, TypeError, AttributeError, EncodingFailed) as error:
            raise ContainerFailed(f"{self.spec.id}: the server's answer makes no sense: {error!r}") from None

    def _checked(self, fields: str) -> str:
        limit = self._description.max_request_bytes
        if len(fields) + 64 > limit:
            raise RequestRefused(
                f"{self.spec.id}: a request of {len(fields)} bytes exceeds the server's limit of {limit}; "
                "raise it there with --max-request-bytes"
            )
        return fields

    def _reset_fields(self, seed: Any, options: Any) -> str:
        # the environment's own checks name the problem best; here is only what JSON cannot carry
        if options is not None and not isinstance(options, Mapping):
            raise InvalidOption(
                "options", options, "must be a mapping", valid=", ".join(self._description.reset_options)
            )
        values = {key: _index(value) for key, value in (options or {}).items()}
        for key, value in values.items():
            try:
                dumps({key: value})
            except EncodingFailed:
                if key not in self._description.reset_options:
                    raise UnknownOption(
                        key, self._description.reset_options, f"in reset(options=...) of {self.spec.id}"
                    ) from None
                raise InvalidOption(
                    str(key), value, "must be an integer" if key == "task_index" else "must be plain data"
                ) from None
        try:
            seed_text = dumps(_index(seed))
        except EncodingFailed:
            raise InvalidOption("seed", seed, "must be an integer") from None
        return f'"seed":{seed_text},"options":{dumps(values)}'

    # -- rewards of the caller ----------------------------------------------------------------------------

    def _rewarded(self, state: State[Any], action: Action, result: StepResult) -> StepResult:
        if not self._reward_functions:
            return result
        rewards = self._bundled(result.rewards.signals, state, action, result.next_state)
        return replace(result, rewards=rewards)

    # -- the parts of a step, for whoever calls them directly ---------------------------------------------

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        state, info = self.reset(seed=seed, options={**options, "task_index": task_index})
        return Start(state.observation, state.hidden, info)

    def _advance(self, state: State[Any], action: Action) -> Advance:
        return Advance.of(self.step(state, action))

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> Iterable[Signal]:
        rest = f'"action":{dumps(action)},"next_state":{dumps(next_state)}'
        answer, _ = run_sync(self._with_state("compute_rewards", state, rest))
        return self._read(read_rewards, answer)


def _index(value: Any) -> Any:
    """An integer of another type (numpy's) as int, everything else as it is."""
    if isinstance(value, bool) or type(value) is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        return value
