"""The wire format: what a client and a server say to each other, as JSON without loss.

A request is an object; over the channel it also has ``id`` and ``op``, over HTTP the route says the operation:

===============  ==================================================  =====================================
operation        fields                                              answer
===============  ==================================================  =====================================
describe         -                                                   spec, num_tasks, tools, ...
reset            seed, options                                       state, key, info
step             state or key, action, share_hidden                  next_state, key, rewards, ...
step_batch       steps: a list of the fields of step                 results: for each step ok or error
compute_rewards  state or key, action, next_state or next_key        rewards
tasks            offset, limit                                       tasks, total
===============  ==================================================  =====================================

Values are written by `llenvs.core.encoding`. ``key`` names a state that the server holds for a while; a server
that no longer holds it answers with `StateMissing`. A state that came in full gets its key as ``state_key``. With
``share_hidden`` the hidden state is left out of the answer (``hidden_shared`` is then true) when it is the one of
the state that was stepped.

Over the channel a frame is one request or a list of them; answers come in any order, one or a list to a frame:
``{"id": 7, "ok": {...}}`` or ``{"id": 7, "error": {...}}`` (see `llenvs.container.errors`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.encoding import decode, dumps
from llenvs.core.environment import EnvironmentSpec, StepResult
from llenvs.core.errors import EncodingFailed, InvalidAction
from llenvs.core.signals import SignalBundle
from llenvs.core.state import State
from llenvs.core.tools import ToolCall, ToolDefinition

PROTOCOL = 1
"""Version of the format; a client refuses a server of another one."""

_RESULT_FIELDS = tuple(each.name for each in fields(StepResult) if each.name != "next_state")


@dataclass(frozen=True, slots=True)
class Description:
    """What a server says of its environment once, when a client connects.

    `sealed`: hidden state leaves the server encrypted. `reset_options`: keys that ``reset(options=...)`` takes.
    `max_request_bytes`: a longer request is refused. `versions`: `llenvs.core.versions.made_of` the environment.
    """

    spec: EnvironmentSpec
    num_tasks: int
    tools: tuple[ToolDefinition, ...]
    reset_options: tuple[str, ...]
    sealed: bool
    max_request_bytes: int
    versions: dict[str, Any] = field(default_factory=dict)
    protocol: int = PROTOCOL


# -- states -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateText:
    """A state as JSON text in parts, so that a part that did not change is written once."""

    observation: str
    hidden: str
    metadata: str

    @classmethod
    def of(cls, state: State[Any], hidden: str | None = None) -> StateText:
        """The text of `state`; `hidden` is the text of its hidden part where that is known already."""
        return cls(
            dumps(state.observation), dumps(state.hidden) if hidden is None else hidden, dumps(state.metadata)
        )

    @property
    def full(self) -> str:
        """The whole state, as `State.from_json` reads it."""
        return self._joined(self.hidden)

    @property
    def without_hidden(self) -> str:
        """The state with null in place of the hidden part."""
        return self._joined("null")

    def key(self) -> str:
        """The content key: 32 hexadecimal digits, equal for equal texts (BLAKE2b, 128 bits)."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.observation, self.hidden, self.metadata):
            data = part.encode("ascii")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.observation) + len(self.hidden) + len(self.metadata)

    def _joined(self, hidden: str) -> str:
        return f'{{"$State":{{"observation":{self.observation},"hidden":{hidden},"metadata":{self.metadata}}}}}'


def state_from_wire(data: Any) -> State[Any]:
    """The state in a request or an answer.

    Raises:
        EncodingFailed: `data` is no encoded state.
    """
    state = decode(data)
    if not isinstance(state, State):
        raise EncodingFailed(f"expected an encoded State, got {type(state).__name__}")
    return state


# -- actions ----------------------------------------------------------------------------------------------


def action_from_wire(data: Any) -> Action:
    """The action of a request: an encoded `Action`, its fields as a plain object, or its text alone.

    Raises:
        InvalidAction, EncodingFailed: it is none of these.
    """
    if isinstance(data, str):
        return Action(data)
    value = decode(data)
    if isinstance(value, Action):
        return value
    if not isinstance(value, dict):
        raise InvalidAction(f"an action is an object with text and tool_calls, got {type(value).__name__}")
    unknown = sorted(set(value) - {"text", "tool_calls"})
    if unknown:
        raise InvalidAction(f"an action has no field {unknown[0]!r}; it has: text, tool_calls")
    text, calls = value.get("text", ""), value.get("tool_calls", [])
    if not isinstance(text, str) or not isinstance(calls, list | tuple):
        raise InvalidAction("text of an action must be a string, tool_calls a list")
    return Action(text, tuple(_tool_call(call) for call in calls))


def _tool_call(value: Any) -> ToolCall:
    if isinstance(value, ToolCall):
        return value
    if not isinstance(value, dict) or not set(value) <= {"name", "arguments", "id"} or "name" not in value:
        raise InvalidAction("a tool call is an object with name, arguments and id")
    name, arguments, call_id = value["name"], value.get("arguments", {}), value.get("id", "")
    if not isinstance(name, str) or not isinstance(arguments, Mapping) or not isinstance(call_id, str):
        raise InvalidAction("name and id of a tool call must be strings, arguments an object")
    return ToolCall(name, arguments, call_id)


# -- answers ----------------------------------------------------------------------------------------------


def reset_answer(state: str, key: str | None, info: Mapping[str, Any]) -> str:
    """The text of reset's answer; `state` is JSON text."""
    return f'{{"state":{state},"key":{json.dumps(key)},"info":{dumps(dict(info))}}}'


def step_answer(
    state: str, key: str | None, result: StepResult, *, hidden_shared: bool, state_key: str | None = None
) -> str:
    """The text of step's answer; `state` is the JSON text of ``result.next_state``.

    `key` names that state, `state_key` the one that was stepped when the request did not know its key.
    """
    rest = dumps({name: getattr(result, name) for name in _RESULT_FIELDS})
    shared = ',"hidden_shared":true' if hidden_shared else ""
    stepped = f',"state_key":"{state_key}"' if state_key is not None else ""
    return f'{{"next_state":{state},"key":{json.dumps(key)}{stepped}{shared},{rest[1:]}'


def shared_end_answer(result: StepResult, state_key: str | None) -> str:
    """`step_answer` for a terminal state without key whose hidden part is shared, written in one go."""
    answer = {name: getattr(result, name) for name in _RESULT_FIELDS}
    answer.update(next_state=replace(result.next_state, hidden=None), key=None, hidden_shared=True)
    if state_key is not None:
        answer["state_key"] = state_key
    return dumps(answer)


def read_reset(answer: Mapping[str, Any]) -> tuple[State[Any], dict[str, Any]]:
    """State and info of reset's answer."""
    return state_from_wire(answer["state"]), decode(answer["info"])


def read_step(answer: Mapping[str, Any], stepped: State[Any]) -> StepResult:
    """The result in step's answer, for the step of `stepped`."""
    state = state_from_wire(answer["next_state"])
    if answer.get("hidden_shared"):
        state = replace(state, hidden=stepped.hidden)
    return StepResult(state, **{name: decode(answer[name]) for name in _RESULT_FIELDS})


def read_rewards(answer: Mapping[str, Any]) -> SignalBundle:
    """The signals of compute_rewards' answer."""
    rewards = decode(answer["rewards"])
    if not isinstance(rewards, SignalBundle):
        raise EncodingFailed(f"expected an encoded SignalBundle, got {type(rewards).__name__}")
    return rewards


def describe_answer(description: Description) -> str:
    """The text of describe's answer."""
    return dumps({each.name: getattr(description, each.name) for each in fields(Description)})


def read_description(answer: Mapping[str, Any]) -> Description:
    """What describe's answer says."""
    return Description(**decode(dict(answer)))
