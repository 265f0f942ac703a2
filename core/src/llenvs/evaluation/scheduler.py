"""Many jobs, a few at a time, each going on as soon as there is room."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

_END = object()


async def run_bounded(
    jobs: Iterable[Job], run: Callable[[Job], Awaitable[Outcome]], limit: int
) -> AsyncGenerator[Outcome, None]:
    """Outcomes of ``run(job)``, as they come.

    Every job has a task of its own; at most `limit` run at once, and the moment one ends the next begins (greedy
    list scheduling: nothing waits for the slowest). Jobs are drawn when their turn comes, and none is begun while
    `limit` outcomes wait to be taken, so memory is that of ``2 * limit`` jobs however many there are.

    The first exception of a job, or of drawing one, is raised. However the iteration ends, no task is left:
    those still running are cancelled and awaited. Close the iterator (`contextlib.aclosing`) when leaving early.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    source = iter(jobs)
    running: set[asyncio.Task[Outcome]] = set()
    ended: deque[asyncio.Task[Outcome]] = deque()
    wake = asyncio.Event()
    exhausted = False
    broken: Exception | None = None

    async def one(job: Job) -> Outcome:
        return await run(job)

    def begin() -> None:
        nonlocal exhausted, broken
        while not exhausted and len(running) < limit and len(ended) < limit:
            try:
                job = next(source, _END)
            except Exception as error:  # noqa: BLE001 - raised to the consumer below
                broken, exhausted = error, True
                return
            if job is _END:
                exhausted = True
                return
            task = asyncio.ensure_future(one(job))  # type: ignore[arg-type]
            running.add(task)
            task.add_done_callback(end)

    def end(task: asyncio.Task[Outcome]) -> None:
        running.discard(task)
        ended.append(task)
        # nothing new after a failure: the consumer is about to hear of it
        if not task.cancelled() and task.exception() is None and not stopping:
            begin()
        wake.set()

    stopping = False
    try:
        begin()
        while running or ended:
            if not ended:
                wake.clear()
                await wake.wait()
            outcome = ended.popleft().result()
            begin()
            yield outcome
        if broken is not None:
            raise broken
    finally:
        stopping = exhausted = True
        for task in running:
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)
