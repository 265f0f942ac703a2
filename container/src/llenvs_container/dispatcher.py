"""From a request's operation and data to the text of its answer: checked, queued, timed, counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from llenvs.container.errors import RequestRefused, RequestTimedOut
from llenvs.core.errors import LLEnvsError, UnknownName
from llenvs_container.metrics import Metrics
from llenvs_container.requests import (
    ComputeRewardsRequest,
    DescribeRequest,
    Request,
    ResetRequest,
    StepBatchRequest,
    StepRequest,
    TasksRequest,
    parse_request,
)
from llenvs_container.service import Service, error_outcome
from llenvs_container.workers import Workers

_DOING = {
    "describe": "describing the environment",
    "tasks": "listing tasks",
    "reset": "resetting",
    "step": "taking a step",
    "compute_rewards": "computing rewards",
}

REQUESTS: dict[str, type[Request]] = {
    "describe": DescribeRequest,
    "tasks": TasksRequest,
    "reset": ResetRequest,
    "step": StepRequest,
    "step_batch": StepBatchRequest,
    "compute_rewards": ComputeRewardsRequest,
}
"""Operation -> the model of its request."""


class UnknownOperation(RequestRefused, UnknownName):
    """The server has no such operation."""

    kind = "operation"

    def __init__(self, name: str) -> None:
        UnknownName.__init__(self, name, sorted(REQUESTS))


class Dispatcher:
    """Answers requests by having the workers run the service.

    Args:
        service: what there is to do.
        workers: where it is done.
        timeout: seconds for one request, the wait in the queue included; None for no limit.
    """

    def __init__(self, service: Service, workers: Workers, timeout: float | None) -> None:
        self.service = service
        self.workers = workers
        self.metrics = Metrics()
        self.in_flight = 0
        self._timeout = timeout

    async def answer(self, operation: Any, data: Any) -> str:
        """The text of the answer.

        Raises:
            RequestRefused, ServerBusy, RequestTimedOut, or what the environment raised.
        """
        began = time.perf_counter()
        outcome = "ok"
        self.in_flight += 1
        try:
            model = REQUESTS.get(operation) if isinstance(operation, str) else None
            if model is None:
                name, operation = str(operation)[:100], "unknown"
                raise UnknownOperation(name)
            request = parse_request(model, data)
            if isinstance(request, StepBatchRequest):
                return await self._batch(request)
            return await self._run(operation, request)
        except LLEnvsError as error:
            outcome = type(error).__name__
            raise
        finally:
            self.in_flight -= 1
            self.metrics.count(operation, outcome, time.perf_counter() - began)

    async def outcome(self, operation: Any, data: Any) -> str:
        """``"ok":`` and the answer, or ``"error":`` and the error, as JSON text without braces."""
        try:
            return f'"ok":{await self.answer(operation, data)}'
        except LLEnvsError as error:
            return error_outcome(error)

    async def _run(self, operation: str, request: Request) -> str:
        method: Callable[[Any], str] = getattr(self.service, operation)
        future = self.workers.submit(lambda: self.service.call(_DOING[operation], lambda: method(request)))
        if self._timeout is None:
            return str(await future)
        # a thread cannot be ended: it goes on with what it does, and its answer is dropped
        timer = asyncio.get_running_loop().call_later(self._timeout, _expire, future, operation, self._timeout)
        try:
            answer: str = await future
            return answer
        finally:
            timer.cancel()

    async def _batch(self, request: StepBatchRequest) -> str:
        slots = asyncio.Semaphore(self.workers.threads)  # one batch must not fill the queue

        async def one(step: StepRequest) -> str:
            async with slots:
                try:
                    return f'{{"ok":{await self._run("step", step)}}}'
                except LLEnvsError as error:
                    return f"{{{error_outcome(error)}}}"

        return f'{{"results":[{",".join(await asyncio.gather(*map(one, request.steps)))}]}}'


def _expire(future: asyncio.Future[Any], operation: str, timeout: float) -> None:
    if not future.done():
        future.set_exception(RequestTimedOut(f"{_DOING[operation]} took longer than {timeout:g} s"))
