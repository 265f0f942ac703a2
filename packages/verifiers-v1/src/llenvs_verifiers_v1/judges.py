"""Another model behind the upstream's judges: any backend of ours.

The upstream's judges make a client from their configuration for each call. `build_async_openai` in its module of
judges is wrapped, once, to give ours within the episodes of an environment that has the option `judge`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

from verifiers.v1 import judge as upstream

from llenvs.inference import SamplingParams
from llenvs.inference.backend import Backend
from llenvs.inference.request import GenerationRequest
from llenvs_verifiers_v1.messages import chat_messages

_judge: ContextVar[Backend | None] = ContextVar("llenvs_verifiers_v1_judge", default=None)
_SAMPLING = {"max_completion_tokens": "max_tokens"}  # the upstream's word: ours


@contextmanager
def judged_by(backend: Backend | None) -> Iterator[None]:
    """Within it, in this context, the upstream's judges ask `backend`; None for what they are configured with."""
    _install()
    token = _judge.set(backend)
    try:
        yield
    finally:
        _judge.reset(token)


@functools.cache
def _install() -> None:
    build = upstream.build_async_openai

    @functools.wraps(build)
    def built(config: Any) -> Any:
        backend = _judge.get()
        return build(config) if backend is None else _Client(backend)

    upstream.build_async_openai = built


class _Client:
    """What a judge uses of an `openai.AsyncOpenAI`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))
        self.beta = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(parse=self._parse)))

    async def __aenter__(self) -> _Client:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Nothing to close: the backend is its owner's."""

    async def _create(self, *, messages: list[Mapping[str, Any]], **sampling: Any) -> Any:
        return _completion(await self._ask(messages, sampling, None), None)

    async def _parse(self, *, messages: list[Mapping[str, Any]], response_format: Any, **sampling: Any) -> Any:
        text = await self._ask(messages, sampling, response_format.model_json_schema())
        return _completion(text, response_format.model_validate_json(text))

    async def _ask(
        self, messages: list[Mapping[str, Any]], sampling: dict[str, Any], schema: dict[str, Any] | None
    ) -> str:
        known = {_SAMPLING.get(name, name): value for name, value in sampling.items()}
        own = {name: known[name] for name in known if name in SamplingParams.model_fields}
        request = GenerationRequest(chat_messages(messages), SamplingParams(**own), json_schema=schema)
        return (await self._backend.generate(request)).text


def _completion(text: str, parsed: Any) -> Any:
    message = SimpleNamespace(content=text, parsed=parsed, refusal=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
