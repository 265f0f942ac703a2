"""The backend for OpenRouter."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from llenvs.core.errors import InvalidOption, nearest
from llenvs.core.generation import Generation
from llenvs.core.message import ChatMessage
from llenvs.inference.errors import BackendError, ContentFiltered, ModelNotFound
from llenvs.inference.option_checks import check_mappings
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.retry import RetryPolicy
from llenvs.inference.sampling import SamplingParams
from llenvs_openai.answers import in_order
from llenvs_openai.backend import OpenAIBackend
from llenvs_openrouter.routing import is_pinned, routing

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

    from llenvs.inference.budget import Budget
    from llenvs.inference.cache import GenerationCache

REASONING_DETAILS = "reasoning_details"
"""Metadata of an assistant message: reasoning blocks of the provider, which go back unchanged."""


class OpenRouterBackend(OpenAIBackend):
    """A model at OpenRouter, which passes requests on to one of the providers that host it.

    Each generation tells who answered (``metadata["provider"]``, `Generation.model`) and what it cost in US
    dollars (``usage.cost``). Providers differ in quantisation and settings: pin one (`provider`) for results that
    mean something; without that a warning says so.

    Args:
        model: as OpenRouter names it, e.g. "qwen/qwen3-32b".
        api_key: None: the environment variable OPENROUTER_API_KEY.
        base_url: None: the environment variable OPENROUTER_BASE_URL, else OpenRouter's own API.
        provider: routing, the API's ``provider``: e.g. ``{"only": ["deepinfra"], "quantizations": ["bf16"]}``.
            ``require_parameters`` is true unless it says otherwise.
        fallback_models: asked in turn when `model` cannot answer (the API's ``models``).
        reasoning: the API's ``reasoning``: ``effort`` or ``max_tokens``, ``exclude``, ``enabled``.
        site_url: of your application, sent as ``HTTP-Referer``.
        title: of your application, sent as ``X-OpenRouter-Title``.

    The other arguments are those of `OpenAIBackend`: parallel_tool_calls, max_concurrency, timeout, retry,
    headers, extra_body, sampling, capabilities, budget, cache.
    """

    name: ClassVar[str] = "openrouter"
    key_variable: ClassVar[str] = "OPENROUTER_API_KEY"
    url_variable: ClassVar[str] = "OPENROUTER_BASE_URL"
    default_url: ClassVar[str] = "https://openrouter.ai/api/v1"
    forbidden: ClassVar[type[BackendError]] = ContentFiltered  # moderation, or a guardrail of the account

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        provider: Mapping[str, Any] | None = None,
        fallback_models: Sequence[str] = (),
        reasoning: Mapping[str, Any] | None = None,
        site_url: str | None = None,
        title: str | None = None,
        parallel_tool_calls: bool | None = None,
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
        check_mappings(reasoning=reasoning)
        if isinstance(fallback_models, str):
            raise InvalidOption("fallback_models", fallback_models, "must be a list of models")
        self._routing = routing(provider)
        self._fallback_models = list(fallback_models)
        self._reasoning = dict(reasoning or {})
        own = {"HTTP-Referer": site_url, "X-OpenRouter-Title": title}
        super().__init__(
            model,
            api_key=api_key,
            base_url=base_url,
            parallel_tool_calls=parallel_tool_calls,
            max_concurrency=max_concurrency,
            timeout=timeout,
            retry=retry,
            headers={**{name: value for name, value in own.items() if value}, **(headers or {})},
            extra_body=extra_body,
            sampling=sampling,
            capabilities=capabilities,
            budget=budget,
            cache=cache,
        )
        if not is_pinned({**self._routing, **self._extra_body.get("provider", {})}):
            warnings.warn(
                f"openrouter: no provider is pinned for {model}, so requests may be answered by differing "
                "versions of it; provider={'only': ['<name>']} pins one",
                stacklevel=2,
            )

    def _assumed(self) -> Capabilities:
        return replace(super()._assumed(), native_n=False)

    async def check(self) -> None:
        """Ask for the key's own entry and for the list of models: finds a wrong key or model; costs nothing."""
        client = self._clients.get()
        errors: tuple[type[Exception], ...] = (*self._sdk_errors(), AttributeError, TypeError)
        try:
            await client.get("/key", cast_to=object)  # the list is open to everybody
            known = sorted([str(each.id) async for each in client.models.list()])
        except errors as error:
            raise self._failure(error) from error
        for model in (self.model, *self._fallback_models):
            plain, _, _ = model.partition(":")  # variants such as :nitro are not listed
            if known and model not in known and plain not in known:
                close = nearest(model, known) or known[:8]
                raise ModelNotFound(self.name, f"there is no model {model!r}; there are {', '.join(close)}")

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`."""
        return {
            **super().identity(),
            "provider": self._routing,
            "models": self._fallback_models,
            "reasoning": self._reasoning,
        }

    def _body(self, request: GenerationRequest, sampling: SamplingParams, n: int) -> dict[str, Any]:
        body = super()._body(request, sampling, n)
        body["messages"] = [
            _with_reasoning(data, message)
            for data, message in zip(body["messages"], request.messages, strict=True)
        ]
        effort = body.pop("reasoning_effort", None)
        reasoning = {**self._reasoning, **({} if effort is None else {"effort": effort})}
        if effort is not None:
            reasoning.pop("max_tokens", None)  # the API takes one of the two
        if reasoning:
            body["reasoning"] = reasoning
        if self._fallback_models:
            body["models"] = [self.model, *self._fallback_models]
        return {**body, "provider": self._routing}

    def _read(
        self, answer: object, request: GenerationRequest, sampling: SamplingParams, n: int
    ) -> list[Generation]:
        generations = super()._read(answer, request, sampling, n)
        completion: ChatCompletion = answer  # type: ignore[assignment]  # what it was read as
        provider = (completion.model_extra or {}).get("provider")
        made = []
        for generation, choice in zip(generations, in_order(completion.choices), strict=False):
            metadata = dict(generation.metadata)
            if provider:
                metadata["provider"] = provider
            native = (choice.model_extra or {}).get("native_finish_reason")
            if native:
                metadata["native_finish_reason"] = native
            details = (choice.message.model_extra or {}).get(REASONING_DETAILS)
            if details:
                metadata[REASONING_DETAILS] = details
            made.append(replace(generation, metadata=metadata))
        return made


def _with_reasoning(data: dict[str, Any], message: ChatMessage) -> dict[str, Any]:
    details = message.metadata.get(REASONING_DETAILS)
    return {**data, REASONING_DETAILS: details} if details and message.role == "assistant" else data
