from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from tenacity import RetryCallState

from llenvs.inference import RetryPolicy
from llenvs.inference.errors import BackendError, BadRequest, ConnectionFailed, ProviderFailed, RateLimited

QUICK = RetryPolicy(attempts=4, min_wait=0.001, max_wait=0.002)


class Attempts:
    """Raises `errors` in turn, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.made: list[float] = []

    async def __call__(self) -> str:
        self.made.append(time.monotonic())
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def test_until_it_succeeds() -> None:
    attempt = Attempts(ConnectionFailed("b", "down"), ProviderFailed("b", "500"), RateLimited("b", "429"))
    assert asyncio.run(QUICK.run(attempt)) == "answer"
    assert len(attempt.made) == 4


def test_the_last_error_is_raised_as_it_is() -> None:
    last = ProviderFailed("b", "fourth")
    attempt = Attempts(*[ProviderFailed("b", str(i)) for i in range(3)], last, ProviderFailed("b", "fifth"))
    with pytest.raises(ProviderFailed) as caught:
        asyncio.run(QUICK.run(attempt))
    assert caught.value is last
    assert len(attempt.made) == 4


@pytest.mark.parametrize("error", [BadRequest("b", "no"), ValueError("a bug"), BackendError("b", "?")])
def test_what_waiting_does_not_cure_is_raised_at_once(error: Exception) -> None:
    attempt = Attempts(error)
    with pytest.raises(type(error)):
        asyncio.run(QUICK.run(attempt))
    assert len(attempt.made) == 1


def test_an_instance_may_say_that_it_is_final() -> None:
    final = ProviderFailed("b", "the same every time")
    final.retryable = False
    attempt = Attempts(final)
    with pytest.raises(ProviderFailed):
        asyncio.run(QUICK.run(attempt))
    assert len(attempt.made) == 1


def test_retry_after_is_waited_for() -> None:
    attempt = Attempts(RateLimited("b", "slow down", retry_after=0.3))
    assert asyncio.run(QUICK.run(attempt)) == "answer"
    assert attempt.made[1] - attempt.made[0] >= 0.3


def test_a_retry_after_that_is_too_long_ends_it() -> None:
    attempt = Attempts(RateLimited("b", "tomorrow", retry_after=121.0))
    with pytest.raises(RateLimited):
        asyncio.run(QUICK.run(attempt))
    assert len(attempt.made) == 1


def test_plain_functions_that_return_awaitables() -> None:
    attempt = Attempts(ConnectionFailed("b", "down"))
    plain: Callable[[], Awaitable[str]] = lambda: attempt()  # noqa: E731
    assert asyncio.run(QUICK.run(plain)) == "answer"


def waits(policy: RetryPolicy, number: int, error: BackendError, draws: int = 300) -> list[float]:
    call = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    call.attempt_number = number
    call.set_exception((type(error), error, None))  # type: ignore[arg-type]
    return [policy._wait(call) for _ in range(draws)]


def test_the_backoff_doubles_up_to_its_bound() -> None:
    policy = RetryPolicy(min_wait=0.5, max_wait=3.0)
    error = ConnectionFailed("b", "down")
    for number, most in {1: 0.5, 2: 1.0, 3: 2.0, 4: 3.0, 9: 3.0}.items():
        drawn = waits(policy, number, error)
        assert min(drawn) >= 0.5
        assert max(drawn) <= most
        assert max(drawn) >= 0.5 + 0.8 * (most - 0.5)  # all of the range is used
    asked = waits(policy, 3, RateLimited("b", "wait", retry_after=10.0))
    assert min(asked) >= 10.0
    assert max(asked) <= 10.5
    assert len(set(asked)) > 100  # not all at the same moment
