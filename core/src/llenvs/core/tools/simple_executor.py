"""Calls one after the other, in the thread of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llenvs.core.loop import run_sync
from llenvs.core.tools.call import ToolCall
from llenvs.core.tools.executor import Execution, Tally, ToolExecutor
from llenvs.core.tools.invocation import Invocation, Outcome, cancelled_itself


class SimpleToolExecutor(ToolExecutor):
    """Runs the calls in their order, without threads and without a limit of time.

    For tools that are quick by nature. What may hang belongs into an `AsyncToolExecutor`.
    """

    def execute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """See `ToolExecutor.execute`."""
        tally = Tally(self, hidden)
        for call in calls:
            if tally.ended_by is not None:
                tally.skip(call)
                continue
            prepared = self._prepare(call, tally.hidden)
            if isinstance(prepared, Outcome):
                tally.add(call, prepared)
            elif prepared.is_async:
                tally.add(call, run_sync(_outcome(prepared)))
            else:
                tally.add(call, prepared.run())
        return tally.execution


async def _outcome(invocation: Invocation) -> Outcome:
    running = asyncio.ensure_future(invocation.arun())  # a task of its own, to tell who was cancelled
    try:
        await asyncio.wait({running})
    except asyncio.CancelledError:
        running.cancel()
        raise
    return cancelled_itself(invocation.hidden) if running.cancelled() else running.result()
