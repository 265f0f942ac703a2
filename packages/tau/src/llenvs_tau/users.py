"""Who talks to the agent: a model, a script, or the task's instructions all at once.

A user is a function of the conversation: it keeps nothing between replies. What it replies is plain data, so that
it can stand in a recipe and be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from llenvs.core.action import Action
from llenvs.core.errors import InvalidOption, LLEnvsError, UpstreamFailed
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference.backend import Backend
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.tool_calls import PromptedToolsBackend
from llenvs_tau.domain import STOP, Domain
from llenvs_tau.options import TauOptions

Reply = dict[str, Any]
"""``{"text": str, "calls": [[id, name, arguments], ...]}``."""
_ATTEMPTS = 4
"""Times that a model is asked which says nothing, as in the upstream."""
_OPENING_NOTE = (
    "(This message holds all that the user wants; the user agrees to whatever follows from it and will say "
    f"nothing else. Write {STOP} once everything is done.)"
)
_GO_ON = f"Please go on: everything that the user wants is in the first message. Write {STOP} once it is done."


@dataclass(frozen=True)
class Heard:
    """What a user knows when it replies.

    Attributes:
        task: the upstream's task.
        messages: the upstream's messages that reach the user, oldest first: texts of the agent, the user's own
            messages, results of the user's own tool calls.
        replies: how many replies the user has given in this episode.
        seed: of the episode.
    """

    task: Any
    messages: Sequence[Any]
    replies: int
    seed: int


class User(ABC):
    """Replies to the agent. Safe under threads."""

    deterministic: ClassVar[bool] = False
    """Whether equal conversations always get equal replies."""
    may_stop: ClassVar[bool] = True
    """Whether the upstream's words for stopping, in a reply, end the episode."""

    @abstractmethod
    def reply(self, heard: Heard) -> Reply:
        """The next message of the user: text, or calls of the user's tools."""

    def check(self, tasks: Iterable[Any]) -> None:
        """Refuse tasks that this user cannot play.

        Raises:
            InvalidOption: naming one of them.
        """

    def close(self) -> None:
        """Free what it holds."""


class UserFailed(UpstreamFailed):
    """The model that plays the user said nothing, or something that is no reply."""

    def __init__(self, domain: str, said: str) -> None:
        super().__init__(f"tau/{domain}", "asking the simulated user", said)


class BackendUser(User):
    """The upstream's simulated user, its prompt unchanged, on one of our backends.

    Args:
        domain: whose tools it has.
        backend: the model; where it takes no tools and the user has some, they are described in the prompt.
        sampling: how to sample; the seed of an episode is added where the backend takes one and none is given.
        owned: whether to close the backend with this user.
    """

    def __init__(self, domain: Domain, backend: Backend, sampling: SamplingParams, *, owned: bool) -> None:
        self._domain = domain
        self._tools = domain.user_definitions
        needs_prompt = bool(self._tools) and not backend.capabilities.tools
        self._backend = PromptedToolsBackend(backend) if needs_prompt else backend
        self._sampling = sampling
        self._owned = owned

    def reply(self, heard: Heard) -> Reply:
        """See `User`."""
        prompt = upstream_simulator(self._domain, heard.task).system_prompt
        request = GenerationRequest(
            (ChatMessage.system(prompt), *(_flipped(message) for message in heard.messages)),
            self._seeded(heard.seed),
            self._tools,
        )
        said = ""
        for _ in range(_ATTEMPTS):
            generation = self._backend.generate_sync(request)
            broken = [call.problem for call in generation.tool_calls if call.problem]
            if not broken and (generation.text.strip() or generation.tool_calls):
                calls = [[call.id, call.name, dict(call.arguments)] for call in generation.tool_calls]
                return {"text": generation.text, "calls": calls}
            said = broken[0] if broken else "it said nothing"
        raise UserFailed(self._domain.name, f"{said} ({_ATTEMPTS} times)")

    def close(self) -> None:
        """See `User`."""
        if self._owned:
            self._backend.close()

    def _seeded(self, seed: int) -> SamplingParams:
        if self._sampling.seed is None and self._backend.capabilities.seed:
            return self._sampling.with_seed(seed)
        return self._sampling


class LiteLLMUser(User):
    """The upstream's simulated user as it is, which calls a model through litellm.

    Args:
        domain: whose tools it has.
        model: as litellm names it.
        arguments: for litellm; the seed of an episode is added unless there is one.
    """

    def __init__(self, domain: Domain, model: str, arguments: Mapping[str, Any]) -> None:
        self._domain = domain
        self._model = model
        self._arguments = dict(arguments)

    def reply(self, heard: Heard) -> Reply:
        """See `User`."""
        arguments = {"seed": heard.seed, "drop_params": True, **self._arguments}
        simulator = upstream_simulator(self._domain, heard.task, self._model, arguments)
        state = simulator.get_init_state(list(heard.messages[:-1]))
        try:
            message, _ = simulator.generate_next_message(heard.messages[-1], state)
        except LLEnvsError:
            raise
        except Exception as error:
            raise UserFailed(self._domain.name, f"{type(error).__name__}: {error}") from error
        calls = [[call.id, call.name, dict(call.arguments)] for call in message.tool_calls or ()]
        return {"text": message.content or "", "calls": calls}


class ScriptedUser(User):
    """Replies that were written beforehand; after the last one it stops.

    Args:
        script: the replies of every task; by id of the task; or a function of the conversation, which is a tuple
            of chat messages (the agent's as "assistant", the user's as "user") and must be all it depends on.
    """

    deterministic: ClassVar[bool] = True

    def __init__(self, script: Any) -> None:
        self._function: Callable[[tuple[ChatMessage, ...]], Any] | None = script if callable(script) else None
        self._by_task: Mapping[str, Any] | None = script if isinstance(script, Mapping) else None
        if self._function is None:
            lists = script.items() if isinstance(script, Mapping) else [("", script)]
            self._replies = {str(task): _replies(script) for task, script in lists}

    def check(self, tasks: Iterable[Any]) -> None:
        """See `User`."""
        if self._by_task is not None:
            for task in tasks:
                if task.id not in self._replies:
                    raise InvalidOption("user_script", task.id, "has no replies for this task")

    def reply(self, heard: Heard) -> Reply:
        """See `User`."""
        if self._function is not None:
            return _read(self._function(tuple(_plain(message) for message in heard.messages)), heard.replies)
        replies = self._replies[heard.task.id if self._by_task is not None else ""]
        return _read(replies[heard.replies] if heard.replies < len(replies) else STOP, heard.replies)


class InstructionsUser(User):
    """Not standard: says all that the task tells the user in the first message, and nothing of use afterwards."""

    deterministic: ClassVar[bool] = True
    may_stop: ClassVar[bool] = False  # it names the word that the agent is to write

    def reply(self, heard: Heard) -> Reply:
        """See `User`."""
        first = f"{heard.task.user_scenario.instructions}\n\n{_OPENING_NOTE}"
        return {"text": _GO_ON if heard.replies else first, "calls": []}


def upstream_simulator(
    domain: Domain, task: Any, model: str | None = None, arguments: Mapping[str, Any] | None = None
) -> Any:
    """The upstream's simulated user for `task`."""
    return domain.upstream.user.UserSimulator(
        tools=list(domain.user_tools) or None,
        instructions=str(task.user_scenario),
        llm=model or "none",
        llm_args=dict(arguments or {}),
    )


def make_user(domain: Domain, options: TauOptions) -> User | None:
    """The user that `options` describe; None in solo mode.

    Raises:
        InvalidOption: none is described, or several are.
        LLEnvsError: what the backend itself says.
    """
    match user_kind(options):
        case "backend":
            backend, owned = backend_of("user_backend", options.user_backend)
            return BackendUser(
                domain, backend, sampling_of("user_sampling", options.user_sampling, backend), owned=owned
            )
        case "litellm":
            assert options.user_model is not None
            return LiteLLMUser(domain, options.user_model, options.user_model_args)
        case "scripted":
            return ScriptedUser(options.user_script)
        case "instructions":
            return InstructionsUser()
        case _:
            return None


_NEEDS = {"backend": "user_backend", "litellm": "user_model", "scripted": "user_script"}


def user_kind(options: TauOptions) -> str:
    """The kind of user that `options` describe.

    Raises:
        InvalidOption: none, one that lacks what it needs, or more than one.
    """
    given = {kind: name for kind, name in _NEEDS.items() if getattr(options, name) is not None}
    if options.user is None:
        if len(given) == 1:
            return next(iter(given))
        problem = f"{' and '.join(given.values())} exclude each other" if given else "nobody talks to the agent"
        raise InvalidOption(
            "user",
            None,
            problem,
            valid="user_backend={backend: ..., model: ...}, user_model=..., user_script=[...], "
            'user="instructions", or user="solo" (mock, telecom, telecom-workflow)',
        )
    for kind, name in _NEEDS.items():
        if kind == options.user and kind not in given:
            raise InvalidOption(name, None, f'is needed with user="{kind}"')
        if kind != options.user and kind in given:
            raise InvalidOption(name, getattr(options, name), f'does not go with user="{options.user}"')
    return options.user


def backend_of(option: str, given: Any) -> tuple[Backend, bool]:
    """The backend that an option holds, and whether it was made here."""
    if isinstance(given, Backend):
        return given, False
    if isinstance(given, Mapping) and "backend" in given:
        from llenvs.inference.backends import make_backend

        options = {key: value for key, value in given.items() if key != "backend"}
        return make_backend(str(given["backend"]), **options), True
    raise InvalidOption(option, given, "must be a backend, or a mapping", valid="{backend: name, model: ..., ...}")


def sampling_of(option: str, given: Any, backend: Backend) -> SamplingParams:
    """Sampling parameters that an option holds; by default temperature 0 where the backend takes one."""
    if given is None:
        return SamplingParams(temperature=0.0) if backend.capabilities.temperature else SamplingParams()
    if not isinstance(given, SamplingParams | Mapping):
        raise InvalidOption(option, given, "must be a mapping", valid="{temperature: 0.7, ...}")
    return SamplingParams.of(given)


def _replies(script: Any) -> list[Any]:
    if isinstance(script, str) or not isinstance(script, Iterable):
        raise InvalidOption(
            "user_script", script, "must be a list of replies, a mapping from task ids, or a function"
        )
    replies = list(script)
    for number, reply in enumerate(replies):
        _read(reply, number)
    return replies


def _read(reply: Any, number: int) -> Reply:
    """A scripted reply in its plain form."""
    if isinstance(reply, Action):
        text, calls = reply.text, list(reply.tool_calls)
    elif isinstance(reply, str):
        text, calls = reply, []
    elif isinstance(reply, Mapping) and set(reply) <= {"text", "tool_calls"}:
        text, calls = reply.get("text") or "", [_call(call) for call in reply.get("tool_calls") or ()]
    else:
        valid = "a text, {tool_calls: [{name: ..., arguments: {...}}]}, or an Action"
        raise InvalidOption("user_script", reply, "is no reply", valid=valid)
    if not isinstance(text, str) or not (text.strip() or calls):
        raise InvalidOption("user_script", reply, "is an empty reply")
    named = [[call.id or f"user_{number}_{i}", call.name, dict(call.arguments)] for i, call in enumerate(calls)]
    return {"text": text, "calls": named}


def _call(call: Any) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if isinstance(call, Mapping) and isinstance(call.get("name"), str) and set(call) <= {"name", "arguments"}:
        return ToolCall(call["name"], dict(call.get("arguments") or {}))
    raise InvalidOption("user_script", call, "is no tool call", valid="{name: ..., arguments: {...}}")


def _plain(message: Any) -> ChatMessage:
    """An upstream message that a user hears, as it is."""
    if message.role == "tool":
        return ChatMessage("tool", message.content or "", tool_call_id=message.id)
    calls = tuple(ToolCall(call.name, call.arguments, call.id) for call in message.tool_calls or ())
    return ChatMessage(message.role, message.content or "", tool_calls=calls)


_OTHER_SIDE = {"assistant": "user", "user": "assistant", "tool": "tool"}


def _flipped(message: Any) -> ChatMessage:
    """The same from the user's side: the user is the one who generates."""
    plain = _plain(message)
    return replace(plain, role=_OTHER_SIDE[plain.role])


__all__ = [
    "BackendUser",
    "Heard",
    "InstructionsUser",
    "LiteLLMUser",
    "Reply",
    "ScriptedUser",
    "ToolDefinition",
    "User",
    "UserFailed",
    "make_user",
    "user_kind",
]
