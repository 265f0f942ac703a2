"""Who plays which seat: the policy one of them, backends the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.inference.backend import Backend
from llenvs.inference.request import GenerationRequest
from llenvs_verifiers_v1.episode import Asked
from llenvs_verifiers_v1.messages import chat_messages, tool_definitions


class Seats:
    """The seats of an environment.

    Args:
        names: of all seats.
        policy: the policy's seat; None for the first.
        env_llm: the option.
        own_endpoint: seats whose model the configuration of the environment names.

    Raises:
        InvalidOption: a seat that there is not, or one that nobody plays.
    """

    def __init__(
        self, names: Sequence[str], policy: str | None, env_llm: Any, own_endpoint: Sequence[str] = ()
    ) -> None:
        if policy is not None and policy not in names:
            raise InvalidOption("seat", policy, "is no seat of this environment", valid=", ".join(names))
        self.policy = policy or names[0]
        others = [name for name in names if name != self.policy and name not in own_endpoint]
        self._backends = _backends(env_llm, others) if others else {}
        for name in others:
            if name not in self._backends:
                problem = f"the seat {name!r} needs a model"
                valid = "env_llm={backend: ..., model: ...}, or a client of the seat's own in env_params"
                raise InvalidOption("env_llm", env_llm, problem, valid=valid)

    @property
    def others(self) -> tuple[str, ...]:
        """Seats that backends play."""
        return tuple(self._backends)

    def reply(self, asked: Asked) -> dict[str, Any]:
        """What a backend says in a seat: text and tool calls, plain data for the recipe."""
        body = asked.body
        request = GenerationRequest(
            chat_messages(body["messages"]), tools=tool_definitions(body.get("tools") or ())
        )
        said = self._backends[asked.seat].generate_sync(request)
        return {"text": said.text, "tool_calls": said.tool_calls}


def _backends(env_llm: Any, seats: Sequence[str]) -> dict[str, Backend]:
    if env_llm is None:
        return {}
    if isinstance(env_llm, Mapping) and env_llm and set(env_llm) <= set(seats):
        return {seat: backend_of(spec, f"env_llm.{seat}") for seat, spec in env_llm.items()}
    one = backend_of(env_llm, "env_llm")
    return dict.fromkeys(seats, one)


def backend_of(spec: Any, field: str) -> Backend:
    """The backend that an option is or names.

    Raises:
        InvalidOption, UnknownBackend, BackendNotInstalled, UnknownOption: what is wrong with it.
    """
    if isinstance(spec, Backend):
        return spec
    if not isinstance(spec, Mapping) or not isinstance(spec.get("backend"), str):
        valid = "a backend, or a mapping such as {backend: openai, model: ...}"
        raise InvalidOption(field, spec, "must be a backend or name one", valid=valid)
    from llenvs.inference.backends import make_backend

    return make_backend(**{"name" if key == "backend" else str(key): value for key, value in spec.items()})
