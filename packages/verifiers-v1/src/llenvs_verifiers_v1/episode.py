"""One episode of the upstream, which runs in the background and waits for replies.

The upstream's rollout, interception server, tools, limits and judges are all its own. Only the last link differs:
the server's client for the model does not ask an endpoint, but whoever steps the episode.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verifiers.v1.clients import Client, ModelContext
from verifiers.v1.configs.client import BaseClientConfig, EvalClientConfig
from verifiers.v1.dialects import Dialect
from verifiers.v1.env import Env
from verifiers.v1.episode import Episode as UpstreamEpisode
from verifiers.v1.graph import PendingTurn
from verifiers.v1.interception import InterceptionServer
from verifiers.v1.task import Task
from verifiers.v1.trace import Trace
from verifiers.v1.types import Response, SamplingConfig

from llenvs.core.action import Action
from llenvs.core.loop_thread import EventLoopThread
from llenvs.inference.backend import Backend
from llenvs_verifiers_v1.judges import judged_by
from llenvs_verifiers_v1.messages import completion
from llenvs_verifiers_v1.relay import tool_statuses
from llenvs_verifiers_v1.scoring import Record, forget, watch

MODEL = "llenvs"
ENDPOINT = EvalClientConfig(base_url="http://llenvs.invalid/v1", api_key_var="LLENVS_NO_KEY")
"""The endpoint of every seat that has none of its own; nothing is ever sent there."""
_LEAVING = 10.0  # seconds that cancelled episodes may take to free what they hold


@dataclass(frozen=True, slots=True)
class Asked:
    """A seat waits for a reply to `body`, a request of Chat Completions."""

    seat: str
    trace_id: str
    body: Mapping[str, Any]
    reply: asyncio.Future[Action]


@dataclass(frozen=True, slots=True)
class Finished:
    """The episode is over; `records` say what raised in scoring, by the ids of the traces."""

    episode: UpstreamEpisode[Any, Any, Any]
    records: Mapping[str, Record]


@dataclass(frozen=True, slots=True)
class Failed:
    """The upstream raised outside of what it records."""

    error: BaseException


Event = Asked | Finished | Failed
_episodes: dict[str, Episode] = {}  # by the ids of their traces


class Episode:
    """One run of `task`; its events are read by the thread that steps it."""

    def __init__(self, stage: Stage, task: Task[Any, Any, Any]) -> None:
        self._stage, self._task = stage, task
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._traces: dict[str, Trace[Any, Any, Any]] = {}
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the background."""
        self._running = self._stage.begin(self._run())

    def next(self, time_limit: float) -> Event:
        """What happens next.

        Raises:
            queue.Empty: nothing did within `time_limit` seconds.
        """
        return self._events.get(timeout=time_limit)

    def answer(self, asked: Asked, action: Action) -> None:
        """Reply to a seat."""

        def give() -> None:
            if not asked.reply.done():  # the rollout may have been cancelled
                asked.reply.set_result(action)

        self._stage.call_soon(give)

    def close(self) -> None:
        """End it, wherever it stands; what it holds is freed in the background."""
        running = self._running
        if running is not None:
            self._stage.call_soon(running.cancel)

    async def ask(self, trace_id: str, body: Mapping[str, Any]) -> Action:
        """What the seat of a rollout replies."""
        reply: asyncio.Future[Action] = asyncio.get_running_loop().create_future()
        seat = self._traces[trace_id].agent.name
        self._events.put(Asked(seat, trace_id, body, reply))
        return await reply

    async def _run(self) -> None:
        context = ModelContext(model=MODEL, client=ENDPOINT)
        try:
            with judged_by(self._stage.judge):
                finished = await self._stage.env.run_episode(self._task, context, on_trace=self._minted)
            self._events.put(Finished(finished, {id: watch(trace) for id, trace in self._traces.items()}))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - handed to the thread that steps
            self._events.put(Failed(error))
        finally:
            for id, trace in self._traces.items():
                _episodes.pop(id, None)
                tool_statuses.pop(id, None)
                forget(trace)

    def _minted(self, trace: Trace[Any, Any, Any]) -> None:
        self._traces[trace.id] = trace
        _episodes[trace.id] = self
        watch(trace)


class Stage:
    """What the episodes of an environment share: a thread with a loop, the interception server, shared tools."""

    def __init__(self, env: Env[Any], name: str, judge: Backend | None = None) -> None:
        self.env, self.judge = env, judge
        self._thread = EventLoopThread(name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self._leave: asyncio.Event | None = None
        self._episodes: set[asyncio.Task[None]] = set()

    def run(self, coroutine: Any) -> Any:
        """What `coroutine` gives, run on the stage's loop."""
        return self._thread.run(coroutine)

    def begin(self, coroutine: Any) -> asyncio.Task[None]:
        """Start `coroutine` on the loop, with everything served that episodes need."""
        task: asyncio.Task[None] = self._thread.run(self._begin(coroutine))
        return task

    def call_soon(self, call: Any) -> None:
        """Have `call` called on the loop."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """End all episodes and what is served. May be called twice."""
        try:
            if self._loop is not None and self._loop.is_running():
                self._thread.run(self._end())
        finally:
            self._loop = None
            self._thread.close()

    async def _begin(self, coroutine: Any) -> asyncio.Task[None]:
        self._loop = asyncio.get_running_loop()
        try:
            if self._serving is None or self._serving.get_loop() is not self._loop:
                ready: asyncio.Future[None] = self._loop.create_future()
                self._leave = asyncio.Event()
                self._serving = self._loop.create_task(self._serve(ready, self._leave))
                self._ready = ready
            await asyncio.shield(self._ready)
        except BaseException:
            coroutine.close()
            raise
        task = self._loop.create_task(coroutine)
        self._episodes.add(task)
        task.add_done_callback(self._episodes.discard)
        return task

    async def _serve(self, ready: asyncio.Future[None], leave: asyncio.Event) -> None:
        """Opens and closes in one task, as what is served demands."""
        try:
            async with self.env.serving():
                secrets = tuple(tool.state_secret for tool in self.env._shared_tools.values() if tool.state_secret)
                async with _Server(None, False, secrets) as server:
                    self.env._interception = server
                    ready.set_result(None)
                    await leave.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)
            ready.exception()  # it is raised where episodes begin
            self._serving = None

    async def _end(self) -> None:
        for task in list(self._episodes):
            task.cancel()
        if self._episodes:
            await asyncio.wait(self._episodes, timeout=_LEAVING)
        if self._serving is not None and self._leave is not None:
            self._leave.set()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._serving, _LEAVING)
            self._serving = None


class _Server(InterceptionServer):
    """The upstream's interception server with our client for seats that have no endpoint of their own."""

    def _client(self, config: BaseClientConfig) -> Client:
        return _StepClient() if config.base_url == ENDPOINT.base_url else super()._client(config)


class _StepClient(Client):
    """Asks whoever steps the episode that a rollout belongs to."""

    async def get_response(
        self,
        dialect: Dialect,
        body: dict[str, Any],
        sampling: SamplingConfig,
        session_id: str | None = None,
        turn: PendingTurn | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The seat's reply as a response of the dialect."""
        episode = _episodes[session_id or ""]
        raw = completion(await episode.ask(session_id or "", body), str(body.get("model")))
        response: Response = dialect.parse_response(dialect.validate_response(raw))
        response.raw = raw
        return response
