"""What the server does, apart from how it is reached: requests in, the text of answers out, no session kept.

All methods of `Service` run environment code: they belong in a worker thread.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any

from llenvs.container.errors import StateMissing, error_to_wire
from llenvs.container.wire import (
    Description,
    StateText,
    action_from_wire,
    describe_answer,
    reset_answer,
    shared_end_answer,
    state_from_wire,
    step_answer,
)
from llenvs.core.encoding import decode, dumps
from llenvs.core.environment import Environment
from llenvs.core.errors import LLEnvsError, UpstreamFailed
from llenvs.core.registry import ENTRY_POINT_GROUP
from llenvs.core.state import State
from llenvs.core.versions import made_of
from llenvs_container.log import logger
from llenvs_container.requests import (
    ComputeRewardsRequest,
    DescribeRequest,
    Request,
    ResetRequest,
    StepRequest,
    TasksRequest,
)
from llenvs_container.sealing import Sealer
from llenvs_container.state_cache import HeldState, StateCache

_DOING = {
    "describe": "describing itself",
    "tasks": "listing tasks",
    "reset": "resetting",
    "step": "taking a step",
    "compute_rewards": "computing rewards",
}


class Service:
    """The operations on one environment.

    Args:
        environment: what is served.
        cache: holds states by key.
        sealer: seals the hidden state of every state that leaves; None leaves it open.
        max_request_bytes: told to clients.
    """

    def __init__(
        self, environment: Environment[Any], cache: StateCache, sealer: Sealer | None, max_request_bytes: int
    ) -> None:
        self._env = environment
        self._cache = cache
        self._sealer = sealer
        self._max_request_bytes = max_request_bytes

    @property
    def cache(self) -> StateCache:
        """The states held."""
        return self._cache

    # -- operations ---------------------------------------------------------------------------------------

    def describe(self, request: DescribeRequest) -> str:
        """See `Description`."""
        env = self._env
        return describe_answer(
            Description(
                env.spec,
                len(env),
                tuple(env.available_tools),
                tuple(env.reset_options),
                self._sealer is not None,
                self._max_request_bytes,
                made_of([env], [ENTRY_POINT_GROUP]),
            )
        )

    def tasks(self, request: TasksRequest) -> str:
        """A page of first observations."""
        total = len(self._env)
        tasks = []
        for index in range(request.offset, min(request.offset + request.limit, total)):
            state, _ = self._env.reset(options={"task_index": index})
            tasks.append({"task_index": index, "observation": state.observation})
        return dumps({"tasks": tasks, "total": total})

    def reset(self, request: ResetRequest) -> str:
        """Begin an episode."""
        options = {key: decode(value) for key, value in request.options.items()}
        state, info = self._env.reset(seed=decode(request.seed), options=options)
        text, key = self._given(state, dumps(state.hidden))
        return reset_answer(text.full, key, info)

    def step(self, request: StepRequest) -> str:
        """Take an action."""
        held, state_key = self._taken(request.state, request.key)
        state = held.state
        result = self._env.step(state, action_from_wire(request.action))
        after = result.next_state
        same = after.hidden is state.hidden
        share = same and request.share_hidden and self._sealer is None
        if share and after.is_terminal:  # neither its hidden part nor a key of it is wanted
            return shared_end_answer(result, state_key)
        text, key = self._given(after, held.hidden if same else dumps(after.hidden))
        return step_answer(
            text.without_hidden if share else text.full, key, result, hidden_shared=share, state_key=state_key
        )

    def compute_rewards(self, request: ComputeRewardsRequest) -> str:
        """The signals of a step already taken."""
        state = self._taken(request.state, request.key)[0].state
        after = self._taken(request.next_state, request.next_key)[0].state
        rewards = self._env.compute_rewards(state, action_from_wire(request.action), after)
        return f'{{"rewards":{dumps(rewards)}}}'

    # -- outcomes -----------------------------------------------------------------------------------------

    def call(self, method: Callable[[Any], str], request: Request) -> str:
        """The answer of one of the operations to `request`, whatever the environment's code may do.

        Raises:
            LLEnvsError: what it raised, or `UpstreamFailed` in place of what is none of ours.
        """
        try:
            return method(request)
        except LLEnvsError:
            raise
        except BaseException as error:
            doing = _DOING[method.__name__]
            logger.error("%s failed:\n%s", doing, traceback.format_exc())
            raise UpstreamFailed(self._env.spec.id, doing, error) from error

    # -- states -------------------------------------------------------------------------------------------

    def _taken(self, data: Any, key: str | None) -> tuple[HeldState, str | None]:
        """The state of a request, and its key if it came in full and is held from now on."""
        if key is not None:
            held = self._cache.get(key)
            if held is None:
                raise StateMissing("the server no longer holds the state of this key; send the state itself")
            return held, None
        received = state_from_wire(data)
        state = received if self._sealer is None else self._sealer.unseal(received)
        text = StateText.of(received)
        hidden = text.hidden if self._sealer is None else dumps(state.hidden)
        return self._hold(state, hidden, text)

    def _given(self, state: State[Any], hidden: str) -> tuple[StateText, str | None]:
        """The text of a state that leaves, and its key if it is held from now on."""
        if self._sealer is None:
            text = StateText.of(state, hidden)
        else:
            text = StateText.of(self._sealer.seal(state, hidden))
        return text, self._hold(state, hidden, text)[1]

    def _hold(self, state: State[Any], hidden: str, text: StateText) -> tuple[HeldState, str | None]:
        held = HeldState(state, hidden, len(text))
        if state.is_terminal:  # nothing can be done with it
            return held, None
        # of the text as it leaves: a key made of open hidden state would let a client test its guesses
        key = text.key()
        return held, key if self._cache.put(key, held) else None


def error_outcome(error: LLEnvsError) -> str:
    """``"error":`` and `error` as JSON text."""
    return f'"error":{json.dumps(error_to_wire(error), separators=(",", ":"), allow_nan=False)}'
