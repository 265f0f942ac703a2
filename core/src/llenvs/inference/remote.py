"""What backends of HTTP APIs share: options, turns within a budget, the one retry policy, a client per loop."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from llenvs.core.encoding import canonical
from llenvs.core.errors import InvalidOption, LLEnvsError, nearest
from llenvs.core.generation import Generation
from llenvs.core.options import parse_options
from llenvs.inference.answer_types import check_types
from llenvs.inference.backend import Backend
from llenvs.inference.errors import (
    AuthenticationFailed,
    BackendError,
    BackendTimeout,
    BadRequest,
    ModelNotFound,
    ProviderFailed,
)
from llenvs.inference.loop import PerLoop
from llenvs.inference.option_checks import check_texts, check_timeout
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.retry import RetryPolicy
from llenvs.inference.sampling import SamplingParams

if TYPE_CHECKING:
    from llenvs.inference.budget import Budget
    from llenvs.inference.cache import GenerationCache


class Client(Protocol):
    """An SDK's client, as far as all of them are alike."""

    @property
    def models(self) -> Any:
        """With ``retrieve(name)`` and ``list()``."""

    async def close(self) -> None:
        """Close its connections."""


ClientT = TypeVar("ClientT", bound=Client)

_NO_KEY_NEEDED = "not-needed"  # SDKs want some text, servers without keys ignore it


class RemoteBackend(Backend, Generic[ClientT]):
    """A model behind an HTTP API, spoken to by the provider's SDK.

    Whoever writes one gives `name`, the class variables below, `_assumed`, `_body`, `_ask`, `_new_client`,
    `_sdk_errors` and `_failure`. SDK retries have to be off: `RetryPolicy` is the one policy of all backends.

    Args:
        model: as the server names it.
        api_key: None: the environment variable `key_variable`; the provider's own API needs one, other servers
            may not.
        base_url: None: the environment variable `url_variable`, else the provider's own API.
        max_concurrency: requests in flight at once from one event loop, >= 1.
        timeout: seconds for one request (for each piece of an answer that is streamed).
        retry: when and how often a failed request is sent again (`RetryPolicy`, or its fields).
        headers: sent with each request.
        extra_body: further members of each request's JSON body; ``SamplingParams.extra`` goes over them.
        sampling: defaults for what a request leaves open (`SamplingParams`, or its fields).
        capabilities: features of this server or model that differ from what is assumed, e.g.
            ``{"logprobs": False}``.
        budget: requests and tokens per minute (`Budget`, or its fields).
        cache: a folder in which answers are kept (or a `GenerationCache`).
    """

    spends_for_itself = True
    key_variable: ClassVar[str]
    url_variable: ClassVar[str]
    default_url: ClassVar[str]
    reserved: ClassVar[frozenset[str]] = frozenset({"model", "messages", "stream"})
    """Members of the body that `SamplingParams.extra` cannot hold, since a request itself decides them."""

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
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        cache: GenerationCache | str | os.PathLike[str] | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise InvalidOption("model", model, "must be the name of a model")
        if base_url is not None and not isinstance(base_url, str):
            raise InvalidOption("base_url", base_url, "must be a URL such as http://127.0.0.1:8000/v1")
        check_timeout(timeout)
        check_texts(api_key=api_key)
        for name, value in {
            "retry": retry, "headers": headers, "extra_body": extra_body, "sampling": sampling,
            "capabilities": capabilities,
        }.items():  # fmt: skip
            if not isinstance(value, Mapping | RetryPolicy | SamplingParams | None):
                raise InvalidOption(name, value, "must be a mapping")
        check_texts(**{f"headers.{header}": value for header, value in (headers or {}).items()})
        super().__init__(model, max_concurrency=max_concurrency)
        self.base_url = (base_url or os.environ.get(self.url_variable) or self.default_url).rstrip("/")
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise InvalidOption("base_url", self.base_url, "must begin with http:// or https://")
        self._is_provider = urlsplit(self.base_url).hostname == urlsplit(self.default_url).hostname
        self._api_key = api_key
        self._timeout = timeout
        self._retry = retry if isinstance(retry, RetryPolicy) else parse_options(RetryPolicy, retry or {}, "retry")
        self._headers = dict(headers or {})
        self._extra_body = dict(extra_body or {})
        self._sampling = SamplingParams.of(sampling)
        try:
            self.capabilities = replace(self._assumed(), **(capabilities or {}))
        except TypeError:
            valid = ", ".join(Capabilities.__dataclass_fields__)
            raise InvalidOption("capabilities", capabilities, "unknown capability", valid=valid) from None
        self._clients: PerLoop[ClientT] = PerLoop(self._new_client)
        self._turns: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(self.max_concurrency))
        self.use(budget=budget, cache=cache)

    # -- what one API is ----------------------------------------------------------------------------------

    @abstractmethod
    def _assumed(self) -> Capabilities:
        """What the server can do unless the user knows better; `base_url` is known by now."""

    @abstractmethod
    def _body(self, request: GenerationRequest, sampling: SamplingParams, n: int) -> dict[str, Any]:
        """The JSON body of `request`, without `extra_body` and the sampling's `extra`. Refuses what cannot be."""

    @abstractmethod
    async def _ask(
        self,
        client: ClientT,
        body: dict[str, Any],
        request: GenerationRequest,
        sampling: SamplingParams,
        n: int,
    ) -> list[Generation]:
        """Send `body` once and read the answer. Raises `BackendError` alone. `Generation.latency` is set later."""

    @abstractmethod
    def _new_client(self) -> ClientT:
        """A client for the running loop."""

    @abstractmethod
    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        """What the SDK raises, errors of its HTTP and JSON libraries included."""

    @abstractmethod
    def _failure(self, error: Exception) -> BackendError:
        """The error of ours for one of `_sdk_errors`."""

    # -- what all share -----------------------------------------------------------------------------------

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`. Headers can hold secrets and go in as a digest."""
        return {
            "backend": self.name,
            "model": self.model,
            "base_url": self.base_url,
            "headers": hashlib.sha256(canonical(self._headers).encode()).hexdigest() if self._headers else "",
            "extra_body": self._extra_body,
            "sampling": self._sampling.model_dump(),
        }

    async def check(self) -> None:
        """Ask the server for the model: finds a dead server, a wrong key, a wrong model; costs no tokens."""
        client = self._clients.get()
        errors: tuple[type[Exception], ...] = (*self._sdk_errors(), AttributeError, TypeError)
        try:
            if self._is_provider:
                await client.models.retrieve(self.model)
                return
            known = sorted([str(each.id) async for each in client.models.list()])
        except errors as error:
            failure = self._failure(error)
            if not self._is_provider and isinstance(failure, ModelNotFound | BadRequest):
                return  # a server without a list of models
            raise failure from error
        if known and self.model not in known:
            close = nearest(self.model, known) or known[:8]
            raise ModelNotFound(
                self.name, f"{self.base_url} has no model {self.model!r}; it has {', '.join(close)}"
            )

    async def aclose(self) -> None:
        """Close the connections. A later request opens new ones."""

        async def close(client: ClientT) -> None:
            await client.close()

        await self._clients.aclose(close)

    def _key(self) -> str:
        """The API key.

        Raises:
            AuthenticationFailed: there is none, and the provider's own API needs one.
        """
        key = self._api_key or os.environ.get(self.key_variable)
        if key:
            return key
        if self._is_provider:
            raise AuthenticationFailed(
                self.name, f"no API key; set the environment variable {self.key_variable}, or give api_key"
            )
        return _NO_KEY_NEEDED

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        sampling = request.sampling.with_defaults(self._sampling)
        self.capabilities.check(replace(request, sampling=sampling), self.name)
        for key in sampling.extra:
            if key in self.reserved:
                raise BadRequest(self.name, f"extra cannot hold {key!r}, which the request itself decides")
        body = {**self._body(request, sampling, n), **self._extra_body, **sampling.extra}

        async def attempt() -> list[Generation]:
            client = self._clients.get()
            async with self._turn(request, n) as answered:
                started = time.perf_counter()
                try:
                    asked = await self._ask(client, body, request, sampling, n)
                    generations = [check_types(each) for each in asked]
                except LLEnvsError:
                    raise
                except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
                    # where objects are expected came something else: the SDKs do not check answers
                    what = f"the answer of {self.base_url} makes no sense: {error}"
                    raise ProviderFailed(self.name, what) from error
                latency = time.perf_counter() - started
                answered(generations)
            return [replace(each, latency=latency) for each in generations]

        return await self._retry.run(attempt)

    @asynccontextmanager
    async def _within_timeout(self) -> AsyncIterator[None]:
        """Bounds the whole of an answer, where the timeout of an SDK is for each piece that comes."""
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError:
            said = f"no answer from {self.base_url} within timeout={self._timeout} s"
            raise BackendTimeout(self.name, said) from None

    @asynccontextmanager
    async def _turn(self, request: GenerationRequest, n: int) -> AsyncIterator[Any]:
        # the place among those in flight first, so that what the budget lets go is sent at once
        async with self._turns.get():
            if self.budget is None:
                yield _nobody
                return
            async with self.budget.spend(request, n) as spending:
                yield spending.answered


def _nobody(generations: Sequence[Generation]) -> None:
    """Takes note of nothing."""
