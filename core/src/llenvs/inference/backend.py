"""The backend protocol: async at heart, sync conveniences on top."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from llenvs.core.closing import Closing
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Generation
from llenvs.core.message import ChatMessage
from llenvs.inference.loop import run_sync
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.sampling import SamplingParams

if TYPE_CHECKING:
    import os

    from llenvs.inference.budget import Budget
    from llenvs.inference.cache import GenerationCache


class Backend(Closing, ABC):
    """A way to a model.

    Whoever writes one gives `name`, `capabilities` and `_generate`. Instances may be used from several loops
    and threads at once; `close` or `aclose` frees what they hold, twice is fine.
    """

    name: ClassVar[str]
    """As written in a configuration."""
    capabilities: Capabilities = Capabilities()
    """What this instance can do."""
    spends_for_itself: ClassVar[bool] = False
    """Whether `_generate` takes from the budget itself, for each attempt; else each call of it is one request."""
    budget: Budget | None = None
    cache: GenerationCache | None = None
    _sampling: SamplingParams = SamplingParams()  # what a request leaves open

    def __init__(self, model: str, *, max_concurrency: int = 64) -> None:
        if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 1:
            raise InvalidOption("max_concurrency", max_concurrency, "must be a whole number of at least 1")
        self.model = model
        self.max_concurrency = max_concurrency

    def use(
        self,
        *,
        budget: Budget | Mapping[str, Any] | None = None,
        cache: GenerationCache | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Keep to a budget, or keep answers on disk; every backend can. Gives this backend back.

        Args:
            budget: requests and tokens per minute (`Budget`, or its fields).
            cache: a folder, or a `GenerationCache`.
        """
        if budget is not None:
            from llenvs.inference.budget import Budget

            self.budget = Budget.of(budget)
        if cache is not None:
            from llenvs.inference.cache import GenerationCache

            self.cache = GenerationCache.of(cache)
        return self

    def identity(self) -> Mapping[str, Any] | None:
        """What of this instance, beside a request, decides its answers, without secrets: what a cache tells
        answers apart by. None: it is not said, and a cache cannot be used."""
        return None

    async def generate(self, request: GenerationRequest) -> Generation:
        """One sample.

        Raises:
            UnsupportedFeature: before anything is sent.
            BackendError: what went wrong, after the retries that are worth it.
        """
        self.capabilities.check(request, self.name)
        return (await self.answers(request, 1))[0]

    async def sample(self, request: GenerationRequest, n: int) -> tuple[Generation, ...]:
        """`n` samples of one request, as one request where the engine can.

        With a seed, sample i uses ``seed + i``. The usage of the prompt is counted in the first sample alone
        where the engine reads the prompt once.
        """
        self.capabilities.check(request, self.name)
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        if n == 1 or self.capabilities.native_n:
            return tuple(await self.answers(request, n))
        seed = request.sampling.seed
        requests = [
            request if seed is None else replace(request, sampling=request.sampling.with_seed(seed + i))
            for i in range(n)
        ]
        answers = await asyncio.gather(*(self.answers(each, 1) for each in requests))
        return tuple(answer[0] for answer in answers)

    async def answers(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        """`n` samples of a request that was checked, from the cache where they are; n > 1 only with
        ``capabilities.native_n``. For backends that stand on others; else see `generate` and `sample`."""
        if self.cache is None:
            return await self._within_budget(request, n)
        identity = self.identity()
        if identity is None:
            raise InvalidOption(
                "cache", str(self.cache.folder), f"backend {self.name} does not say what decides its answers"
            )
        sampling = request.sampling.with_defaults(self._sampling)
        return await self.cache.answers(
            identity,
            request,
            n,
            lambda: self._within_budget(request, n),
            repeatable=sampling.temperature == 0 or sampling.seed is not None,
        )

    async def _within_budget(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        if self.budget is None or self.spends_for_itself:
            return await self._generate(request, n)
        async with self.budget.spend(request, n) as spending:
            generations = await self._generate(request, n)
            spending.answered(generations)
            return generations

    @abstractmethod
    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        """`n` samples of a request that was checked; n > 1 only with ``capabilities.native_n``."""

    async def aclose(self) -> None:
        """Free what this backend holds."""

    async def check(self) -> None:
        """Whether the model can be reached: raises the error of a request that would fail, else returns.

        Costs at most one cheap call (no tokens where the API allows it). By default does nothing.
        """

    # -- sync conveniences --------------------------------------------------------------------------------

    def generate_sync(self, request: GenerationRequest) -> Generation:
        """`generate` for code without a loop; also inside a running one."""
        return run_sync(self.generate(request))

    def chat(
        self, messages: str | Iterable[ChatMessage], sampling: SamplingParams | None = None, **fields: Any
    ) -> Generation:
        """One answer to a chat; a str is one user message. `fields`: see `GenerationRequest`."""
        return run_sync(self.achat(messages, sampling, **fields))

    async def achat(
        self, messages: str | Iterable[ChatMessage], sampling: SamplingParams | None = None, **fields: Any
    ) -> Generation:
        """`chat` for async code."""
        chat = (ChatMessage.user(messages),) if isinstance(messages, str) else tuple(messages)
        return await self.generate(GenerationRequest(chat, sampling or SamplingParams(), **fields))

    def chat_batch(
        self, chats: Iterable[str | Sequence[ChatMessage]], sampling: SamplingParams | None = None
    ) -> list[Generation]:
        """Answers to many chats, in their order, at most `max_concurrency` at once. The first error is raised."""

        async def all_of_them() -> list[Generation]:
            limit = asyncio.Semaphore(self.max_concurrency)

            async def one(chat: str | Sequence[ChatMessage]) -> Generation:
                async with limit:
                    return await self.achat(chat, sampling)

            return list(await asyncio.gather(*(one(chat) for chat in chats)))

        return run_sync(all_of_them())

    def close(self) -> None:
        """`aclose` for code without a loop."""
        run_sync(self.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model}>"
