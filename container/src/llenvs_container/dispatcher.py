"""From a request's operation and data to the text of its answer: checked, queued, timed, counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from llenvs.container.errors import RequestRefused, ServerBusy
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
from llenvs_container.workers import Done, Workers


class UnknownOperation(UnknownName):
    """The server has no such operation."""

    kind = "operation"


class Dispatcher:
    """Answers requests by having the workers run the service. For one event loop.

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
        self._operations: dict[str, tuple[type[Request], Callable[[Any], str]]] = {
            "describe": (DescribeRequest, service.describe),
            "tasks": (TasksRequest, service.tasks),
            "reset": (ResetRequest, service.reset),
            "step": (StepRequest, service.step),
            "compute_rewards": (ComputeRewardsRequest, service.compute_rewards),
        }
        self._known = frozenset({*self._operations, "step_batch"})

    async def answer(self, operation: str, data: Any) -> str:
        """The text of the answer.

        Raises:
            RequestRefused, ServerBusy, RequestTimedOut, or what the environment raised.
        """
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def done(answer: str | None, error: LLEnvsError | None) -> None:
            if future.done():
                return  # the client hung up
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(answer or "")

        self.start(operation, data, done)
        return await future

    def start(self, operation: Any, data: Any, done: Done) -> None:
        """Begin to answer; `done` gets the text of the answer, or the error, perhaps at once. Raises nothing."""
        name = operation if isinstance(operation, str) and operation in self._known else "unknown"
        counted = _Counted(self, name, done)
        try:
            if name == "unknown":
                raise RequestRefused(str(UnknownOperation(str(operation)[:100], sorted(self._known))))
            if name == "step_batch":
                self._start_batch(parse_request(StepBatchRequest, data), counted)
            else:
                model, method = self._operations[name]
                self._submit(method, parse_request(model, data), counted)
        except LLEnvsError as error:
            counted(None, error)

    def _submit(self, method: Callable[[Any], str], request: Request, done: Done) -> None:
        self.workers.submit(lambda: self.service.call(method, request), done, self._timeout)

    def _start_batch(self, batch: StepBatchRequest, done: Done) -> None:
        _Batch(batch.steps, lambda step, each: self._submit(self.service.step, step, each), done).start(
            self.workers.threads
        )


class _Counted:
    """Passes an outcome on and counts it."""

    __slots__ = ("_began", "_dispatcher", "_done", "_name")

    def __init__(self, dispatcher: Dispatcher, name: str, done: Done) -> None:
        self._dispatcher = dispatcher
        self._name = name
        self._done = done
        self._began = time.perf_counter()
        dispatcher.in_flight += 1

    def __call__(self, answer: str | None, error: LLEnvsError | None) -> None:
        dispatcher = self._dispatcher
        dispatcher.in_flight -= 1
        outcome = "ok" if error is None else type(error).__name__
        dispatcher.metrics.count(self._name, outcome, time.perf_counter() - self._began)
        self._done(answer, error)


class _Batch:
    """The steps of one batch: a few at a time, so that a batch does not fill the queue."""

    def __init__(self, steps: list[StepRequest], submit: Callable[[StepRequest, Done], None], done: Done) -> None:
        self._steps = steps
        self._submit = submit
        self._done = done
        self._outcomes: list[str] = [""] * len(steps)
        self._next = 0
        self._missing = len(steps)

    def start(self, at_once: int) -> None:
        """Begin with `at_once` steps; each that ends makes room for the next."""
        if not self._steps:
            self._done('{"results":[]}', None)
        for _ in range(min(at_once, len(self._steps))):
            self._start_next()

    def _start_next(self) -> None:
        if self._next >= len(self._steps):
            return
        index = self._next
        self._next += 1
        try:
            self._submit(self._steps[index], lambda answer, error: self._ended(index, answer, error))
        except ServerBusy as error:
            self._ended(index, None, error)

    def _ended(self, index: int, answer: str | None, error: LLEnvsError | None) -> None:
        self._outcomes[index] = f'"ok":{answer}' if error is None else error_outcome(error)
        self._missing -= 1
        if self._missing == 0:
            self._done(f'{{"results":[{",".join(f"{{{outcome}}}" for outcome in self._outcomes)}]}}', None)
        else:
            self._start_next()
