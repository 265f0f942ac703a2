"""Replicas: any number of servers behind one client; dead ones are started again and their requests repeated.

Repeating is safe because a request depends on nothing but itself: a state is a value.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any

from llenvs.container.channel import Channel
from llenvs.container.config import ContainerConfig
from llenvs.container.errors import ConnectionLost, NotSent, ServerBusy, ServerKilled
from llenvs.container.runtimes.endpoint import RunningServer, Runtime
from llenvs.core.errors import ContainerFailed
from llenvs.core.loop import PerLoop

_ATTEMPTS = 6
"""A request whose server died so often is what kills it."""
_MOST_ATTEMPTS = 60
"""As often a request may find that the server it was meant for died before it was sent."""
_RECONNECTS = 3
"""The failed attempt after which a server that seems alive is taken for dead."""
_SLACK = 4
"""A server that holds the state is taken unless it has so many more requests in flight than the least busy."""
_BUSY_WAIT = (0.02, 1.0)
"""Seconds before a request that met a full queue is sent again: the first wait, and the longest."""

_numbers = itertools.count(1)


class Replica:
    """One server and the channels to it, one for each event loop."""

    def __init__(self, server: RunningServer, max_in_flight: int) -> None:
        self.server = server
        self.number = next(_numbers)
        self.in_flight = 0
        self._counting = threading.Lock()
        self._links: PerLoop[_Link] = PerLoop(lambda: _Link(server, max_in_flight))
        self._last: tuple[weakref.ref[asyncio.AbstractEventLoop], _Link] | None = None

    async def request(self, fields: str, timeout: float | None) -> Any:
        """See `Channel.request`."""
        self._count(1)
        try:
            return await self._link().request(fields, timeout)
        finally:
            self._count(-1)

    def _link(self) -> _Link:
        loop, last = asyncio.get_running_loop(), self._last
        if last is not None and last[0]() is loop:  # nearly always
            return last[1]
        link = self._links.get()
        self._last = (weakref.ref(loop), link)
        return link

    def _count(self, change: int) -> None:
        with self._counting:
            self.in_flight += change

    async def aclose(self) -> None:
        """Close the channels."""
        await self._links.aclose(_Link.aclose)


class _Link:
    """The channel to a server from one event loop, opened when first used and again when it was lost."""

    def __init__(self, server: RunningServer, max_in_flight: int) -> None:
        self._server = server
        self._slots = asyncio.Semaphore(max_in_flight)
        self._opening = asyncio.Lock()
        self._channel: Channel | None = None

    async def request(self, fields: str, timeout: float | None) -> Any:
        async with self._slots:
            channel = self._channel
            if channel is None or not channel.is_open:
                channel = await self._open()
            return await channel.request(fields, timeout)

    async def _open(self) -> Channel:
        async with self._opening:
            if self._channel is None or not self._channel.is_open:
                try:
                    self._channel = await Channel.open(self._server.endpoint)
                except ConnectionLost as error:
                    raise NotSent(str(error)) from None
            return self._channel

    async def aclose(self) -> None:
        if self._channel is not None:
            self._channel.close()
            await asyncio.sleep(0)


class _Wait:
    """The one task of an event loop that waits for a server, on behalf of the thousands that may need it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def task(self, wait: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """The task, begun now unless it is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(wait())
            self._task.add_done_callback(_heard)
        return self._task


class Replicas:
    """The servers of one environment. Safe under threads and event loops.

    Args:
        runtime: starts servers.
        environment: what they serve, ``{"name", "adapter", **options}``.
        config: number of replicas, limits, restarts.
    """

    def __init__(self, runtime: Runtime, environment: Mapping[str, Any], config: ContainerConfig) -> None:
        self._runtime = runtime
        self._environment = environment
        self._config = config
        self._lock = threading.Lock()
        self._closed = False
        self._pid = os.getpid()
        self._waits: PerLoop[_Wait] = PerLoop(_Wait)
        self._restarts: dict[int, deque[float]] = {}  # slot -> when its server was started again
        self._slots: list[Replica | Future[Replica]] = []
        self._slots = list(self._start_all())

    def _start_all(self) -> list[Replica]:
        starts = [_in_thread(self._start) for _ in range(self._config.replicas)]
        replicas, failure = [], None
        for start in starts:
            try:
                replicas.append(start.result())
            except BaseException as error:  # noqa: BLE001 - raised below, once the others are stopped
                failure = failure or error
        if failure is not None:
            for replica in replicas:
                replica.server.stop()
            raise failure
        return replicas

    def _start(self) -> Replica:
        return Replica(self._runtime.start(self._environment), self._config.max_in_flight)

    async def request(
        self, fields: str | Callable[[int | None], str], holder: int | None = None
    ) -> tuple[Any, int]:
        """Send a request to one of the servers, to another one when that dies, later when all are busy.

        Args:
            fields: see `Channel.request`; or a function of the replica's number that gives them.
            holder: the number of the replica to take unless it is much busier than others.

        Returns:
            The answer and the number of the replica that gave it.

        Raises:
            ContainerFailed: the servers die faster than they may be started again.
            LLEnvsError: what the server answered.
        """
        busy_wait, attempts, deaths = _BUSY_WAIT[0], 0, 0
        while True:
            replica = self._ready(holder) or await self._awaited(holder)
            text = fields if isinstance(fields, str) else fields(replica.number)
            try:
                return await replica.request(text, self._config.request_timeout), replica.number
            except ServerBusy:
                await asyncio.sleep(busy_wait * random.uniform(0.5, 1.0))
                busy_wait = min(2 * busy_wait, _BUSY_WAIT[1])
            except ConnectionLost as error:
                attempts += 1
                deaths += not isinstance(error, NotSent)
                if deaths >= _ATTEMPTS or attempts >= _MOST_ATTEMPTS:
                    raise ContainerFailed(
                        f"the server died or hung up {deaths} times while it had this request ({error})",
                        await asyncio.to_thread(replica.server.log_tail),
                    ) from None
                if attempts < _RECONNECTS and await asyncio.to_thread(replica.server.is_alive):
                    await asyncio.sleep(0.05 * attempts)  # a broken connection, or a process about to be gone
                else:
                    self._replace(replica, error)

    # -- which one ----------------------------------------------------------------------------------------

    def _ready(self, holder: int | None) -> Replica | None:
        """The replica to take now; None when all are being started."""
        with self._lock:
            if self._closed:
                raise ContainerFailed("the environment was closed")
            alive = [slot for slot in self._slots if isinstance(slot, Replica)]
        if len(alive) < 2:
            return alive[0] if alive else None
        least = min(alive, key=_load)
        for replica in alive:
            if replica.number == holder and replica.in_flight <= least.in_flight + _SLACK:
                return replica
        return least

    async def _awaited(self, holder: int | None) -> Replica:
        """The replica to take, once one is there."""
        while True:
            replica = self._ready(holder)
            if replica is not None:
                return replica
            await asyncio.shield(self._waits.get().task(self._next_start))

    async def _next_start(self) -> None:
        """Wait until one of the servers that are being started is there.

        Raises:
            LLEnvsError: why one could not be started.
        """
        with self._lock:
            starting = [slot for slot in self._slots if not isinstance(slot, Replica)]
        if not starting:
            return
        await asyncio.wait([_awaitable(each) for each in starting], return_when=asyncio.FIRST_COMPLETED)
        for future in starting:
            if future.done() and (failure := future.exception()) is not None:
                raise failure.with_traceback(None)  # of others that raised it before

    # -- restarts -----------------------------------------------------------------------------------------

    def _replace(self, replica: Replica, error: ConnectionLost) -> None:
        """Start a server in place of `replica`, which lost a connection, unless that is being done already."""
        with self._lock:
            if self._closed or replica not in self._slots:
                return
            slot = self._slots.index(replica)
            self._count_restart(slot, error, replica.server)
            self._slots[slot] = _in_thread(lambda: self._restarted(slot, replica))

    def _count_restart(self, slot: int, error: ContainerFailed, log: str | RunningServer) -> None:
        """Note one more restart in `slot`, where `error` tells of a death, or raise if there were too many."""
        times = self._restarts.setdefault(slot, deque())
        now = time.monotonic()
        while times and now - times[0] > self._config.restart_window:
            times.popleft()
        if len(times) >= self._config.restarts:
            raise ContainerFailed(
                f"a server died {len(times) + 1} times within {self._config.restart_window:g} s, "
                f"more often than restarts={self._config.restarts} allows ({error})",
                log if isinstance(log, str) else log.log_tail(),
            )
        times.append(now)

    def _start_again(self, slot: int) -> Replica:
        """`_start`, and once more when a server is killed before it is ready, as often as restarts allow."""
        while True:
            try:
                return self._start()
            except ServerKilled as error:
                with self._lock:
                    if self._closed:
                        raise
                    self._count_restart(slot, error, error.log_tail)

    def _restarted(self, slot: int, old: Replica) -> Replica:
        old.server.stop()
        try:
            new = self._start_again(slot)
        except BaseException:
            with self._lock:
                self._slots[slot] = old  # its next request fails at once and starts another attempt
            raise
        with self._lock:
            if not self._closed:
                self._slots[slot] = new
                return new
        new.server.stop()
        raise ContainerFailed("the environment was closed")

    # -- the end ------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Stop the servers. Twice is fine; does nothing in a forked child, whose parent they belong to."""
        with self._lock:
            slots, self._slots = self._slots, []
            self._closed = True
        if os.getpid() != self._pid:
            return
        for slot in slots:
            if isinstance(slot, Replica):
                await slot.aclose()
                await asyncio.to_thread(slot.server.stop)
            else:
                await asyncio.wait([_awaitable(slot)])

    def __len__(self) -> int:
        return len(self._slots)


def _load(replica: Replica) -> int:
    return replica.in_flight


def _awaitable(start: Future[Replica]) -> asyncio.Future[Replica]:
    """`start` for `asyncio.wait`, without a complaint in the log when nobody asks for its error."""
    future = asyncio.wrap_future(start)
    future.add_done_callback(_heard)
    return future


def _heard(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


def _in_thread(function: Callable[[], Replica]) -> Future[Replica]:
    """`function` in a thread of its own, for it may take minutes."""
    future: Future[Replica] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)

    threading.Thread(target=run, name="llenvs-start-server", daemon=True).start()
    return future
