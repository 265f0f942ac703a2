"""Calls side by side, each with a limit of time."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.loop import PerLoop, run_sync, shared_loop
from llenvs.core.tools.call import ToolCall, ToolStatus
from llenvs.core.tools.executor import MAX_CHARACTERS, Execution, Tally, ToolExecutor
from llenvs.core.tools.invocation import Invocation, Outcome, cancelled_itself
from llenvs.core.tools.tool_loop import leave_if_blocked, start_on_tool_loop


class AsyncToolExecutor(ToolExecutor):
    """Runs the calls of an action in parallel, async functions on the loop and plain ones in threads.

    Stateful and terminal tools are kept in order: such a call waits for those before it, and those after it wait
    for the call. A call that does not end in time becomes an error result; an async function is cancelled then, a
    plain one goes on unseen in its thread, since Python cannot stop it (the thread does not keep the process
    alive). Called by `execute`, async functions run on a loop of their own, so that one that blocks it holds up
    other async tools alone; called by `aexecute` they run on the caller's loop and must not block it.

    Args:
        tools: functions and `Tool` objects: a mapping from their names, or any iterable.
        timeout: seconds for each call; a tool's own goes first. None: no limit.
        max_concurrency: calls at once, over all actions of one event loop. Time spent waiting for others does
            not count.
        max_characters: of a result; longer ones are cut and say so. None: no limit.
    """

    def __init__(
        self,
        tools: Mapping[str, Any] | Iterable[Any],
        *,
        timeout: float | None = 60.0,
        max_concurrency: int = 32,
        max_characters: int | None = MAX_CHARACTERS,
    ) -> None:
        super().__init__(tools, max_characters=max_characters)
        if timeout is not None and not timeout > 0:
            raise InvalidOption("timeout", timeout, "must be a positive number of seconds, or None")
        if max_concurrency < 1:
            raise InvalidOption("max_concurrency", max_concurrency, "must be at least 1")
        self.timeout = timeout
        self._slots = PerLoop(lambda: asyncio.Semaphore(max_concurrency))

    def execute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """`aexecute` on the shared loop, for code without a loop; also inside a running one."""
        return run_sync(self.aexecute(calls, hidden))

    async def aexecute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """See `ToolExecutor.execute`."""
        tally = Tally(self, hidden)
        for group in self._groups(calls):
            if tally.ended_by is not None:
                for call in group:
                    tally.skip(call)
                continue
            outcomes = await asyncio.gather(*(self._one(call, tally.hidden) for call in group))
            for call, outcome in zip(group, outcomes, strict=True):
                tally.add(call, outcome)
        return tally.execution

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        """Calls that may run together, in order: each stateful or terminal one alone."""
        groups: list[list[ToolCall]] = [[]]
        for call in calls:
            tool = self._tools.get(call.name)
            if tool is not None and tool.in_order:
                groups += [[call], []]
            else:
                groups[-1].append(call)
        return [group for group in groups if group]

    async def _one(self, call: ToolCall, hidden: Any) -> Outcome:
        prepared = self._prepare(call, hidden)
        if isinstance(prepared, Outcome):
            return prepared
        limit = self.timeout if prepared.tool.timeout is None else prepared.tool.timeout
        async with self._slots.get():
            running = _started(prepared)
            try:
                done, _ = await asyncio.wait({running}, timeout=limit)
            except asyncio.CancelledError:
                running.cancel()
                raise
            if not done:
                running.cancel()  # not waited for: it may take its time, or refuse
                if prepared.is_async and _is_shared_loop():
                    await leave_if_blocked()
                return Outcome(
                    f"Error: the tool did not finish within {limit:g} seconds.", ToolStatus.ERROR, hidden
                )
            if running.cancelled():
                return cancelled_itself(hidden)
            return running.result()


def _started(invocation: Invocation) -> asyncio.Future[Outcome]:
    if not invocation.is_async:
        return _in_thread(invocation)
    return start_on_tool_loop(invocation.arun()) if _is_shared_loop() else asyncio.ensure_future(invocation.arun())


def _is_shared_loop() -> bool:
    return asyncio.get_running_loop() is shared_loop()


def _in_thread(invocation: Invocation) -> asyncio.Future[Outcome]:
    """The outcome of a plain function, run in a thread of its own: one that hangs takes no worker from a pool."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(made: Outcome) -> None:
        if not outcome.done():
            outcome.set_result(made)

    def work() -> None:
        made = context.run(invocation.run)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, made)

    threading.Thread(target=work, name=f"llenvs-tool-{invocation.tool.name}", daemon=True).start()
    return outcome
