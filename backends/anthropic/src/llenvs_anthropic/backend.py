"""The backend for Anthropic's Messages API."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Generation, Usage
from llenvs.inference.errors import BackendError, BadRequest, ProviderFailed
from llenvs.inference.option_checks import check_mappings
from llenvs.inference.remote import RemoteBackend
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.retry import RetryPolicy
from llenvs.inference.sampling import SamplingParams
from llenvs_anthropic.answers import generation_of, message_of, raw_blocks, usage_of
from llenvs_anthropic.failures import failure_of
from llenvs_anthropic.messages import chat_to_api, tool_choice_to_api

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

    from llenvs.inference.budget import Budget
    from llenvs.inference.cache import GenerationCache

WITHOUT_SAMPLING = "2026-10-21"
"""The version of the API from which on it has no temperature, top_p and top_k."""
MOST_UNSTREAMED = 21_333
"""Tokens of an answer that the SDK would wait for without streaming (10 minutes at 128,000 tokens an hour)."""
_MOST_PAUSES = 16
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class AnthropicBackend(RemoteBackend["AsyncAnthropic"]):
    """A model behind Anthropic's Messages API, at Anthropic or at any server with that route (`base_url`).

    The API has no seed, no logprobs and no token ids; n samples are n requests. From version 2026-10-21 on, which
    the SDK speaks, it has no temperature, top_p and top_k either: a request for them is refused before anything is
    sent, unless `api_version` names an older version. Models that refuse them there too say so.

    Signed thinking comes back in ``metadata`` of the generation, and `Generation.to_message` carries it into the
    next request, as tool use with thinking demands.

    Args:
        model: as the API names it.
        api_key: None: the environment variable ANTHROPIC_API_KEY.
        base_url: without ``/v1``. None: the environment variable ANTHROPIC_BASE_URL, else Anthropic's own API.
        max_tokens: the most tokens of an answer where nothing else is said; the API demands a number.
        api_version: sent as ``anthropic-version``, e.g. "2023-06-01"; None: the SDK's own.
        thinking: the API's ``thinking``, e.g. ``{"type": "enabled", "budget_tokens": 2048}`` or
            ``{"type": "adaptive"}``.
        parallel_tool_calls: whether one answer may hold several calls; None: the API's default.
        echoes_prefix: whether answers repeat the assistant prefix; None: not at Anthropic, else yes (as
            llama.cpp does).

    The other arguments are those of `RemoteBackend`: max_concurrency, timeout, retry, headers, extra_body,
    sampling, capabilities, budget, cache.
    """

    name: ClassVar[str] = "anthropic"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    url_variable: ClassVar[str] = "ANTHROPIC_BASE_URL"
    default_url: ClassVar[str] = "https://api.anthropic.com"
    reserved: ClassVar[frozenset[str]] = frozenset(
        {"model", "messages", "system", "stream", "tools", "stop_sequences", "max_tokens"}
    )

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = 4096,
        api_version: str | None = None,
        thinking: Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        echoes_prefix: bool | None = None,
        max_concurrency: int = 64,
        timeout: float | None = 600.0,
        retry: RetryPolicy | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        cache: GenerationCache | str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise InvalidOption("max_tokens", max_tokens, "must be a whole number of at least 1")
        if api_version is not None and not _DATE.fullmatch(str(api_version)):
            raise InvalidOption("api_version", api_version, "must be a date such as 2023-06-01")
        check_mappings(thinking=thinking)
        self._max_tokens = max_tokens
        self._api_version = api_version
        self._thinking = dict(thinking) if thinking is not None else None
        self._parallel_tool_calls = parallel_tool_calls
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
        self._echoes_prefix = not self._is_provider if echoes_prefix is None else echoes_prefix

    def _assumed(self) -> Capabilities:
        samples = self._api_version is not None and self._api_version < WITHOUT_SAMPLING
        hint = (
            f"the API has none from version {WITHOUT_SAMPLING} on; api_version='2023-06-01' sends it, for models "
            "that take it; else leave it out"
        )
        return Capabilities(
            prefix=True,
            tools=True,
            images=True,
            temperature=samples,
            top_p=samples,
            top_k=samples,
            reasoning_effort=True,
            json_schema=True,
            hints=dict.fromkeys(("temperature", "top_p", "top_k"), hint),
        )

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`."""
        return {
            **super().identity(),
            "max_tokens": self._max_tokens,
            "api_version": self._api_version or "",
            "thinking": self._thinking,
            "parallel_tool_calls": self._parallel_tool_calls,
        }

    def _body(self, request: GenerationRequest, sampling: SamplingParams, n: int) -> dict[str, Any]:
        system, messages = chat_to_api(request.messages, self.name)
        thinking = sampling.extra.get("thinking", self._extra_body.get("thinking", self._thinking))
        if request.prefix:
            if request.prefix != request.prefix.rstrip():
                raise BadRequest(self.name, "the API refuses a prefix that ends in white space")
            if thinking and thinking.get("type") not in (None, "disabled"):
                raise BadRequest(self.name, "the API takes no prefix together with thinking")
            messages.append({"role": "assistant", "content": request.prefix})
        output: dict[str, Any] = {}
        if sampling.reasoning_effort is not None:
            output["effort"] = sampling.reasoning_effort
        if request.json_schema is not None:
            output["format"] = {"type": "json_schema", "schema": dict(request.json_schema)}
        members: dict[str, Any] = {
            "model": self.model,
            "max_tokens": sampling.max_tokens or self._max_tokens,
            "messages": messages,
            "system": system or None,
            "stop_sequences": list(sampling.stop) or None,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or None,
            "thinking": thinking,
            "output_config": output or None,
        }
        if request.tools:
            members["tools"] = [tool.to_anthropic() for tool in request.tools]
            members["tool_choice"] = tool_choice_to_api(request.tool_choice, self._parallel_tool_calls)
        return {key: value for key, value in members.items() if value is not None}

    async def _ask(
        self,
        client: AsyncAnthropic,
        body: dict[str, Any],
        request: GenerationRequest,
        sampling: SamplingParams,
        n: int,
    ) -> list[Generation]:
        blocks: list[dict[str, Any]] = []
        usage = Usage()
        for _ in range(_MOST_PAUSES):
            message = await self._send(client, body)
            blocks += raw_blocks(message)
            usage += usage_of(message)
            if message.stop_reason != "pause_turn":
                break
            # the API's own tools took long: sent back as it is, the turn goes on
            so_far = [*body["messages"], {"role": "assistant", "content": raw_blocks(message)}]
            body = {**body, "messages": so_far}
        else:
            raise ProviderFailed(self.name, f"the turn was paused {_MOST_PAUSES} times")
        return [generation_of(message, blocks, usage, prefix=request.prefix, echoes_prefix=self._echoes_prefix)]

    async def _send(self, client: AsyncAnthropic, body: Mapping[str, Any]) -> Message:
        named: dict[str, Any] = {key: body[key] for key in ("model", "max_tokens", "messages")}
        # the rest as it is: the SDK has no argument for what its version of the API lacks
        named["extra_body"] = {key: value for key, value in body.items() if key not in named}
        try:
            if body["max_tokens"] > MOST_UNSTREAMED:
                async with client.messages.stream(**named) as stream:
                    return message_of(await stream.get_final_message(), self.name)
            async with self._within_timeout():
                return message_of(await client.messages.create(**named), self.name)
        except BackendError:
            raise
        except self._sdk_errors() as error:
            raise self._failure(error) from error
        except (AssertionError, AttributeError, RuntimeError, TypeError) as error:
            # so the SDK fails on streams that do not hold what they should
            raise ProviderFailed(
                self.name, f"the answer of {self.base_url} cannot be read: {type(error).__name__}: {error}"
            ) from error

    def _new_client(self) -> AsyncAnthropic:
        key = self._key()
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        version = {"anthropic-version": self._api_version} if self._api_version else {}
        return AsyncAnthropic(
            api_key=key,
            base_url=self.base_url,
            timeout=self._timeout,
            max_retries=0,
            default_headers={**version, **self._headers},
            # the SDK's own would, when it is collected after its loop has ended, close itself on another one
            http_client=DefaultAsyncHttpxClient(timeout=self._timeout),
        )

    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        import anthropic
        import httpx2

        return (anthropic.AnthropicError, httpx2.HTTPError, ValueError)

    def _failure(self, error: Exception) -> BackendError:
        return failure_of(
            error, backend=self.name, model=self.model, base_url=self.base_url, timeout=self._timeout
        )
