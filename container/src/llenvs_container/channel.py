"""The server's end of the channel: frames of requests in, frames of answers out, in the order they are ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from llenvs.container.errors import RequestRefused
from llenvs_container.dispatcher import Dispatcher
from llenvs_container.requests import BATCH_LIMIT
from llenvs_container.service import error_outcome

_UNSENT_LIMIT = 16 << 20
"""Characters of answers that a client has not taken; past them its requests are not read."""
_OUTSTANDING_LIMIT = 4 * BATCH_LIMIT
"""Requests of one connection without an answer; past them no more are read."""


class ChannelSession:
    """One connection."""

    def __init__(self, websocket: WebSocket, dispatcher: Dispatcher) -> None:
        self._websocket = websocket
        self._dispatcher = dispatcher
        self._answers: list[str] = []
        self._unsent = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = asyncio.Event()
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Serve until the client leaves."""
        await self._websocket.accept()
        sender = asyncio.create_task(self._send_answers())
        try:
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                self._take(message.get("text") or message.get("bytes") or "")
                while self._unsent > _UNSENT_LIMIT or len(self._tasks) > _OUTSTANDING_LIMIT:
                    self._room.clear()
                    await self._room.wait()
        finally:
            for task in (sender, *self._tasks):
                task.cancel()

    def _take(self, text: str | bytes) -> None:
        try:
            frame = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._refuse(None, f"no JSON: {str(error)[:200]}")
            return
        requests = frame if isinstance(frame, list) else [frame]
        if len(requests) > BATCH_LIMIT:
            self._refuse(None, f"a frame holds at most {BATCH_LIMIT} requests, got {len(requests)}")
            return
        for request in requests:
            number = request.pop("id", None) if isinstance(request, dict) else None
            if type(number) is not int and not (isinstance(number, str) and len(number) <= 64):
                self._refuse(None, "a request is an object with an id (an integer or a short text) and an op")
                continue
            task = asyncio.create_task(self._answer(number, request.pop("op", None), request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int | str, operation: Any, data: Any) -> None:
        self._put(number, await self._dispatcher.outcome(operation, data))

    def _refuse(self, number: None, problem: str) -> None:
        self._put(number, error_outcome(RequestRefused(f"the request is malformed: {problem}")))

    def _put(self, number: int | str | None, outcome: str) -> None:
        answer = f'{{"id":{json.dumps(number)},{outcome}}}'
        self._answers.append(answer)
        self._unsent += len(answer)
        self._ready.set()

    async def _send_answers(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            answers, self._answers = self._answers, []
            text = answers[0] if len(answers) == 1 else f"[{','.join(answers)}]"
            try:
                await self._websocket.send_text(text)
            except (WebSocketDisconnect, RuntimeError, OSError):
                return  # the client is gone; the reader learns of it too
            self._unsent -= sum(map(len, answers))
            self._room.set()


def channel_endpoint(dispatcher: Dispatcher) -> Callable[[WebSocket], Awaitable[None]]:
    """The WebSocket endpoint."""

    async def channel(websocket: WebSocket) -> None:
        await ChannelSession(websocket, dispatcher).run()

    return channel
