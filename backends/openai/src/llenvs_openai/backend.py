"""The backend for the OpenAI API and for every server that speaks it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from llenvs.core.errors import InvalidOption, nearest
from llenvs.core.generation import Generation
from llenvs.core.options import parse_options
from llenvs.inference.backend import Backend
from llenvs.inference.errors import (
    AuthenticationFailed,
    BackendError,
    BadRequest,
    ModelNotFound,
    UnsupportedFeature,
)
from llenvs.inference.loop import PerLoop
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.retry import RetryPolicy
from llenvs.inference.sampling import SamplingParams
from llenvs_openai.answers import generations_of
from llenvs_openai.failures import failure_of
from llenvs_openai.messages import message_to_api, tool_choice_to_api

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MaxTokensField = Literal["max_completion_tokens", "max_tokens"]

OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY_NEEDED = "not-needed"  # the SDK wants some text, servers without keys ignore it
_MOST_STOPS = 4
_OURS = frozenset({"model", "messages", "n", "stream", "tools", "stop"})


class OpenAIBackend(Backend):
    """A model behind OpenAI's Chat Completions, at OpenAI or at any server with that API (`base_url`).

    Sends only what a request asks for; what it leaves open is the server's default. A parameter that the API does
    not have is refused before anything is sent, one that the model refuses is an error that names it; nothing
    is dropped. OpenAI's own API has no ``top_k`` and ``min_p``; other servers are sent them.

    Args:
        model: as the server names it.
        api_key: None: the environment variable OPENAI_API_KEY; OpenAI's own API needs one, other servers may not.
        base_url: None: the environment variable OPENAI_BASE_URL, else OpenAI's own API.
        max_concurrency: requests in flight at once from one event loop, >= 1.
        timeout: seconds for one request.
        retry: when and how often a failed request is sent again (`RetryPolicy`, or its fields); the SDK's own
            retries are off.
        headers: sent with each request.
        extra_body: further members of each request's JSON body; ``SamplingParams.extra`` goes over them.
        max_tokens_field: the member that holds the limit of tokens; None: "max_completion_tokens" at OpenAI,
            "max_tokens" elsewhere.
        return_token_ids: ask a vLLM server for the exact ids of prompt and completion.
        sampling: defaults for what a request leaves open (`SamplingParams`, or its fields).
        capabilities: features of this server that differ from what is assumed, e.g. ``{"logprobs": False}``.

    Seeds: of n samples of one request, servers use seed + i or their own way; OpenAI promises no exact repetition.
    """

    name: ClassVar[str] = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_concurrency: int = 64,
        timeout: float | None = 600.0,
        retry: RetryPolicy | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        max_tokens_field: MaxTokensField | None = None,
        return_token_ids: bool = False,
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise InvalidOption("model", model, "must be the name of a model")
        if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 1:
            raise InvalidOption("max_concurrency", max_concurrency, "must be a whole number of at least 1")
        if max_tokens_field not in (None, "max_completion_tokens", "max_tokens"):
            valid = "max_completion_tokens, max_tokens"
            raise InvalidOption("max_tokens_field", max_tokens_field, "no such member", valid=valid)
        super().__init__(model, max_concurrency=max_concurrency)
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise InvalidOption("base_url", self.base_url, "must begin with http:// or https://")
        self._is_openai = urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname
        self._api_key = api_key
        self._timeout = timeout
        self._retry = retry if isinstance(retry, RetryPolicy) else parse_options(RetryPolicy, retry or {}, "retry")
        self._headers = dict(headers or {})
        self._extra_body = dict(extra_body or {})
        self._max_tokens_field = max_tokens_field or ("max_completion_tokens" if self._is_openai else "max_tokens")
        self._return_token_ids = return_token_ids
        self._sampling = (
            sampling
            if isinstance(sampling, SamplingParams)
            else parse_options(SamplingParams, sampling or {}, "sampling")
        )
        try:
            self.capabilities = replace(self._assumed(), **(capabilities or {}))
        except TypeError:
            valid = ", ".join(Capabilities.__dataclass_fields__)
            raise InvalidOption("capabilities", capabilities, "unknown capability", valid=valid) from None
        self._clients: PerLoop[AsyncOpenAI] = PerLoop(self._new_client)
        self._turns: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(self.max_concurrency))

    def _assumed(self) -> Capabilities:
        return Capabilities(
            logprobs=True,
            max_top_logprobs=20,
            token_ids=self._return_token_ids,
            tools=True,
            images=True,
            seed=True,
            native_n=True,
            top_k=not self._is_openai,
            min_p=not self._is_openai,
            penalties=True,
            reasoning_effort=True,
            json_schema=True,
        )

    async def check(self) -> None:
        """Ask the server for its models: finds a dead server, a wrong key, a wrong model; costs no tokens."""
        import openai

        client = self._clients.get()
        try:
            if self._is_openai:
                await client.models.retrieve(self.model)
                return
            known = sorted([str(each.id) async for each in client.models.list()])
        except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:
            failure = self._failure(error)
            if not self._is_openai and isinstance(failure, ModelNotFound | BadRequest):
                return  # a server without a list of models
            raise failure from error
        if known and self.model not in known:
            close = nearest(self.model, known) or known[:8]
            raise ModelNotFound(
                self.name, f"{self.base_url} has no model {self.model!r}; it has {', '.join(close)}"
            )

    async def aclose(self) -> None:
        """Close the connections. A later request opens new ones."""
        await self._clients.aclose(lambda client: client.close())

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        sampling = request.sampling.with_defaults(self._sampling)
        self.capabilities.check(replace(request, sampling=sampling), self.name)
        parameters = self._parameters(request, sampling, n)
        return await self._retry.run(lambda: self._attempt(parameters, sampling, n))

    async def _attempt(self, parameters: Mapping[str, Any], sampling: SamplingParams, n: int) -> list[Generation]:
        import openai

        client = self._clients.get()
        async with self._turns.get():
            started = time.perf_counter()
            try:
                answer = await client.chat.completions.create(**parameters)
            except (openai.OpenAIError, ValueError) as error:
                raise self._failure(error) from error
            latency = time.perf_counter() - started
        return generations_of(
            answer,
            backend=self.name,
            count=n,
            logprobs=sampling.logprobs,
            token_ids=self._return_token_ids,
            latency=latency,
        )

    def _parameters(self, request: GenerationRequest, sampling: SamplingParams, n: int) -> dict[str, Any]:
        """The arguments of the SDK's ``create``."""
        for key in sampling.extra:
            if key in _OURS:
                raise BadRequest(self.name, f"extra cannot hold {key!r}, which the request itself decides")
        if self._is_openai and len(sampling.stop) > _MOST_STOPS:
            raise UnsupportedFeature(self.name, f"{len(sampling.stop)} stop strings", f"at most {_MOST_STOPS}")
        body: dict[str, Any] = {}
        if not self._is_openai:
            body |= {"top_k": sampling.top_k, "min_p": sampling.min_p}
        if self._return_token_ids:
            body["return_token_ids"] = True
        parameters: dict[str, Any] = {
            self._max_tokens_field: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "presence_penalty": sampling.presence_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "reasoning_effort": sampling.reasoning_effort,
            "logprobs": True if sampling.logprobs is not None else None,
            # some servers take 0 alternatives for no logprobs at all
            "top_logprobs": None if sampling.logprobs is None else max(1, sampling.logprobs),
            "n": n if n > 1 else None,
            "tools": [tool.to_openai() for tool in request.tools] or None,
            "tool_choice": tool_choice_to_api(request.tool_choice) if request.tools else None,
            "response_format": _response_format(request.json_schema),
        }
        body = {key: value for key, value in body.items() if value is not None}
        return {
            "model": self.model,
            "messages": [message_to_api(message) for message in request.messages],
            **{key: value for key, value in parameters.items() if value is not None},
            "extra_body": {**body, **self._extra_body, **sampling.extra} or None,
        }

    def _new_client(self) -> AsyncOpenAI:
        key = self._api_key or os.environ.get("OPENAI_API_KEY")
        if not key:
            if self._is_openai:
                raise AuthenticationFailed(
                    self.name, "no API key; set the environment variable OPENAI_API_KEY, or give api_key"
                )
            key = _NO_KEY_NEEDED
        from openai import AsyncOpenAI

        return AsyncOpenAI(
            api_key=key,
            base_url=self.base_url,
            timeout=self._timeout,
            max_retries=0,
            default_headers=self._headers,
        )

    def _failure(self, error: Exception) -> BackendError:
        return failure_of(
            error, backend=self.name, model=self.model, base_url=self.base_url, timeout=self._timeout
        )


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema), "strict": True}}
