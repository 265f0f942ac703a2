"""How many requests and tokens a minute may cost, for providers that count both."""

from __future__ import annotations

import threading
import time
from asyncio import CancelledError, sleep
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.core.generation import Generation
from llenvs.inference.request import GenerationRequest

MINUTE = 60.0
_CHARACTERS_PER_TOKEN = 3.5  # of English text; rather too few than too many
_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_IMAGE = 1000
_FIRST_GUESS = 256  # tokens of an answer, until some have been seen


class Budget:
    """At most so many requests and tokens in any 60 seconds.

    Requests start in the order in which they come. Tokens are estimated when a request starts and put right when
    its answer tells them; a request that needs more than a whole minute's tokens waits until it is alone. One
    budget may serve several backends (one key, several models), loops and threads.

    Args:
        requests_per_minute: >= 1; None: no limit.
        tokens_per_minute: prompt and completion together, >= 1; None: no limit.
        clock: seconds that only grow; for tests.
    """

    def __init__(
        self,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for option, value in {
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
        }.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidOption(f"budget.{option}", value, "must be a whole number of at least 1")
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._last_start = float("-inf")
        self._requests = _Window(requests_per_minute)
        self._tokens = _Window(tokens_per_minute)
        self._answer_tokens = float(_FIRST_GUESS)

    @classmethod
    def of(cls, value: Budget | Mapping[str, Any] | None) -> Budget | None:
        """A budget from its fields; one that is made already is kept, and so is None."""
        if value is None or isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise InvalidOption("budget", value, "must be a Budget or its fields", valid=", ".join(_FIELDS))
        for key in value:
            if key not in _FIELDS:
                raise UnknownOption(str(key), _FIELDS, "options of budget")
        return cls(**value)

    @asynccontextmanager
    async def spend(self, request: GenerationRequest, n: int = 1) -> AsyncIterator[Spending]:
        """Wait until `request` may be sent. The answers are told to what is yielded; a request whose answers are
        not told (it failed) keeps its place among the requests and costs no tokens."""
        estimate = self.estimate(request, n)
        with self._lock:
            start, spending = self._reserve(estimate)
        try:
            wait = start - self._clock()
            if wait > 0:
                await sleep(wait)
        except CancelledError:
            with self._lock:  # nothing was sent
                spending.requests.change(0)
                spending.tokens.change(0)
            raise
        try:
            yield spending
        finally:
            with self._lock:
                spending.tokens.change(spending.used)

    def estimate(self, request: GenerationRequest, n: int = 1) -> int:
        """Tokens that `request` will cost: its text by its length, its answer by `max_tokens` or what answers had
        so far, whichever is less."""
        characters = sum(
            len(message.content) + sum(len(str(call.arguments)) for call in message.tool_calls)
            for message in request.messages
        ) + sum(len(tool.description) + len(str(tool.parameters)) for tool in request.tools)
        prompt = characters / _CHARACTERS_PER_TOKEN + sum(
            _TOKENS_PER_MESSAGE + _TOKENS_PER_IMAGE * len(message.images) for message in request.messages
        )
        limit = request.sampling.max_tokens
        answer = self._answer_tokens if limit is None else min(float(limit), self._answer_tokens)
        return round(prompt + n * answer)

    def _reserve(self, tokens: int) -> tuple[float, Spending]:
        start = max(self._clock(), self._last_start)
        start = self._requests.earliest(1, start)
        start = self._tokens.earliest(tokens, start)
        self._last_start = start
        spending = Spending(self, self._requests.add(1, start), self._tokens.add(tokens, start))
        return start, spending

    def _seen(self, completion_tokens: int) -> None:
        with self._lock:
            self._answer_tokens += (completion_tokens - self._answer_tokens) / 16


_FIELDS = ("requests_per_minute", "tokens_per_minute")


class Spending:
    """What one request takes out of a budget."""

    def __init__(self, budget: Budget, requests: _Entry, tokens: _Entry) -> None:
        self._budget = budget
        self.requests = requests
        self.tokens = tokens
        self.used = 0
        """Tokens that it cost, as far as is known."""

    def answered(self, generations: Sequence[Generation]) -> None:
        """Count the tokens of the answers; where none are told, the estimate stays."""
        total = sum(each.usage.total_tokens for each in generations)
        self.used = total or self.tokens.amount
        if total:
            for each in generations:
                self._budget._seen(each.usage.completion_tokens)


class _Entry:
    """An amount in a window, from `start` on for a minute."""

    __slots__ = ("amount", "gone", "start", "window")

    def __init__(self, window: _Window, amount: int, start: float) -> None:
        self.window = window
        self.amount = amount
        self.start = start
        self.gone = False

    def change(self, amount: int) -> None:
        if not self.gone:
            self.window.total += amount - self.amount
        self.amount = amount


class _Window:
    """Amounts of a sliding minute. Starts never go back: what has left it for one start has left it for ever."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._entries: deque[_Entry] = deque()
        self.total = 0

    def earliest(self, amount: int, start: float) -> float:
        """The first time from `start` on at which `amount` fits."""
        if self._limit is None:
            return start
        while self._entries:
            oldest = self._entries[0]
            if oldest.start + MINUTE > start:
                if self.total + amount <= self._limit:
                    break
                start = oldest.start + MINUTE
            self._entries.popleft()
            self.total -= oldest.amount
            oldest.gone = True
        return start

    def add(self, amount: int, start: float) -> _Entry:
        entry = _Entry(self, amount, start)
        if self._limit is not None:
            self._entries.append(entry)
            self.total += amount
        else:
            entry.gone = True
        return entry
