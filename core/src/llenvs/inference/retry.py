"""The one retry policy of all backends: exponential backoff with jitter that honours Retry-After."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from llenvs.inference.errors import BackendError

T = TypeVar("T")


class RetryPolicy(BaseModel):
    """When and how often a failed request is sent again.

    Attributes:
        attempts: requests in all, >= 1 (1: no retry).
        min_wait, max_wait: bounds of the backoff in seconds. The wait after attempt k is drawn uniformly from
            [min_wait, min_wait * 2**(k - 1)], its upper end at most `max_wait`.
        max_retry_after: a Retry-After longer than this many seconds ends retrying at once. A shorter one is waited
            for, and up to `min_wait` more, so that requests refused together do not come back together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempts: int = Field(default=6, ge=1)
    min_wait: float = Field(default=0.5, ge=0.0)
    max_wait: float = Field(default=30.0, ge=0.0)
    max_retry_after: float = Field(default=120.0, ge=0.0)

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Await ``attempt()`` until it succeeds.

        Raises:
            BackendError: the last one, when it is not retryable or the attempts are used up.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=retry_if_exception(self._worth_it),
            reraise=True,
        )

        async def once() -> T:  # a plain function that returns an awaitable would not be awaited
            return await attempt()

        return await retrying(once)

    def _worth_it(self, error: BaseException) -> bool:
        if not isinstance(error, BackendError) or not error.retryable:
            return False
        retry_after = getattr(error, "retry_after", None)
        return retry_after is None or retry_after <= self.max_retry_after

    def _wait(self, call: RetryCallState) -> float:
        error = call.outcome.exception() if call.outcome is not None else None
        retry_after = getattr(error, "retry_after", None)
        if retry_after is not None:
            return max(float(retry_after), 0.0) + random.uniform(0.0, self.min_wait)
        return wait_random_exponential(multiplier=self.min_wait, max=self.max_wait, min=self.min_wait)(call)
