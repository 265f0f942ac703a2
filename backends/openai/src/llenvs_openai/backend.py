"""The backend for the OpenAI API and for every server that speaks it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Generation
from llenvs.inference.errors import AuthenticationFailed, BackendError, UnsupportedFeature
from llenvs.inference.remote import RemoteBackend
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.retry import RetryPolicy
from llenvs.inference.sampling import SamplingParams
from llenvs_openai.answers import generations_of
from llenvs_openai.custom_tools import CustomTools
from llenvs_openai.failures import failure_of
from llenvs_openai.messages import message_to_api

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from llenvs.inference.budget import Budget
    from llenvs.inference.cache import GenerationCache

MaxTokensField = Literal["max_completion_tokens", "max_tokens"]

_MOST_STOPS = 4


class OpenAIBackend(RemoteBackend["AsyncOpenAI"]):
    """A model behind OpenAI's Chat Completions, at OpenAI or at any server with that API (`base_url`).

    Sends only what a request asks for; what it leaves open is the server's default. A parameter that the API does
    not have is refused before anything is sent, one that the model refuses is an error that names it; nothing
    is dropped. OpenAI's own API has no ``top_k`` and ``min_p``; other servers are sent them.

    Args:
        model: as the server names it.
        api_key: None: the environment variable OPENAI_API_KEY; OpenAI's own API needs one, other servers may not.
        base_url: None: the environment variable OPENAI_BASE_URL, else OpenAI's own API.
        max_tokens_field: the member that holds the limit of tokens; None: "max_completion_tokens" at OpenAI,
            "max_tokens" elsewhere.
        parallel_tool_calls: whether one answer may hold several calls; None: the server's default.
        custom_tools: names of tools (or names with formats, see `CustomTools`) that are sent as custom ones: the
            model calls them with free text, their one argument.
        return_token_ids: ask a vLLM server for the exact ids of prompt and completion.

    The other arguments are those of `RemoteBackend`: max_concurrency, timeout, retry, headers, extra_body,
    sampling, capabilities, budget, cache.

    Seeds: of n samples of one request, servers use seed + i or their own way; OpenAI promises no exact repetition.
    """

    name: ClassVar[str] = "openai"
    forbidden: ClassVar[type[BackendError]] = AuthenticationFailed
    """What status 403 means."""
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    url_variable: ClassVar[str] = "OPENAI_BASE_URL"
    default_url: ClassVar[str] = "https://api.openai.com/v1"
    reserved: ClassVar[frozenset[str]] = frozenset({"model", "messages", "n", "stream", "tools", "stop"})

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
        parallel_tool_calls: bool | None = None,
        custom_tools: Sequence[str] | Mapping[str, Mapping[str, Any] | None] = (),
        return_token_ids: bool = False,
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        cache: GenerationCache | str | os.PathLike[str] | None = None,
    ) -> None:
        if max_tokens_field not in (None, "max_completion_tokens", "max_tokens"):
            valid = "max_completion_tokens, max_tokens"
            raise InvalidOption("max_tokens_field", max_tokens_field, "no such member", valid=valid)
        self._return_token_ids = return_token_ids
        self._parallel_tool_calls = parallel_tool_calls
        self._custom_tools = CustomTools.of(custom_tools)
        super().__init__(
            model,
            api_key=api_key,
            base_url=base_url,
            max_concurrency=max_concurrency,
            timeout=timeout,
            retry=retry,
            headers=headers,
            extra_body=extra_body,
            sampling=sampling,
            capabilities=capabilities,
            budget=budget,
            cache=cache,
        )
        self._max_tokens_field = max_tokens_field or ("max_completion_tokens" if self._is_openai else "max_tokens")

    @property
    def _is_openai(self) -> bool:
        """Whether this is OpenAI's own API, without what other servers add to it."""
        return urlsplit(self.base_url).hostname == "api.openai.com"

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

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`."""
        return {
            **super().identity(),
            "parallel_tool_calls": self._parallel_tool_calls,
            "custom_tools": dict(self._custom_tools.formats),
            "return_token_ids": self._return_token_ids,
        }

    def _body(self, request: GenerationRequest, sampling: SamplingParams, n: int) -> dict[str, Any]:
        if self._is_openai and len(sampling.stop) > _MOST_STOPS:
            raise UnsupportedFeature(self.name, f"{len(sampling.stop)} stop strings", f"at most {_MOST_STOPS}")
        neutral = self._is_openai  # top_k and min_p that limit nothing are not sent to an API without them
        members: dict[str, Any] = {
            "model": self.model,
            "messages": [message_to_api(message) for message in request.messages],
            self._max_tokens_field: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": None if neutral else sampling.top_k,
            "min_p": None if neutral else sampling.min_p,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "presence_penalty": sampling.presence_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "reasoning_effort": sampling.reasoning_effort,
            "logprobs": True if sampling.logprobs is not None else None,
            # some servers take 0 alternatives for no logprobs at all
            "top_logprobs": None if sampling.logprobs is None else max(1, sampling.logprobs),
            "n": n if n > 1 else None,
            "response_format": _response_format(request.json_schema),
            "return_token_ids": self._return_token_ids or None,
        }
        if request.tools:
            members["tools"] = [self._custom_tools.tool_to_api(tool) for tool in request.tools]
            members["tool_choice"] = self._custom_tools.choice_to_api(request.tool_choice)
            members["parallel_tool_calls"] = self._parallel_tool_calls
        return {key: value for key, value in members.items() if value is not None}

    async def _ask(
        self,
        client: AsyncOpenAI,
        body: dict[str, Any],
        request: GenerationRequest,
        sampling: SamplingParams,
        n: int,
    ) -> list[Generation]:
        from openai.types.chat import ChatCompletion

        try:
            # what chat.completions.create() does but for sending the body through its parameters' types, which
            # takes a third of its processor time and would move what it does not know into extra_body
            async with self._within_timeout():
                answer = await client.post("/chat/completions", cast_to=ChatCompletion, body=body)
        except self._sdk_errors() as error:
            raise self._failure(error) from error
        return self._read(answer, request, sampling, n)

    def _read(
        self, answer: object, request: GenerationRequest, sampling: SamplingParams, n: int
    ) -> list[Generation]:
        return generations_of(
            answer,
            backend=self.name,
            count=n,
            logprobs=sampling.logprobs,
            token_ids=self._return_token_ids,
            tools=request.tools,
            forbidden=self.forbidden,
        )

    def _new_client(self) -> AsyncOpenAI:
        key = self._key()
        from openai import AsyncOpenAI

        from llenvs_openai.connections import http_client

        return AsyncOpenAI(
            api_key=key,
            base_url=self.base_url,
            timeout=self._timeout,
            max_retries=0,
            default_headers=self._headers,
            # (also: the SDK's own would, when collected after its loop has ended, close itself on another one)
            http_client=http_client(self.base_url, self._timeout),
        )

    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        import openai

        return (openai.OpenAIError, ValueError)

    def _failure(self, error: Exception) -> BackendError:
        return failure_of(
            error,
            backend=self.name,
            model=self.model,
            base_url=self.base_url,
            timeout=self._timeout,
            forbidden=self.forbidden,
        )


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema), "strict": True}}
