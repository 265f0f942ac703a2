"""The upstream alone: its own episodes, its own client, and an endpoint on this machine that plays a policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.utils import loaders

Policy = Callable[[list[dict[str, Any]]], "str | tuple[str, dict[str, Any]]"]
"""From the chat to a text, or to the name and the arguments of a tool."""


def run_episodes(
    name: str,
    policy: Policy,
    episodes: int,
    *,
    harness: str,
    seat: str = "agent",
    concurrency: int = 1,
    **taskset: Any,
) -> list[Any]:
    """The upstream's episodes of the first tasks, as `run_episode` gives them.

    Args:
        name: of the taskset.
        policy: plays all seats.
        episodes: how many tasks.
        harness: id of the seat's harness; `null` is the upstream's own, a program that uv runs.
        seat: the one seat.
        concurrency: episodes at once.
        taskset: fields of the taskset's config.
    """
    return asyncio.run(_run(name, policy, episodes, harness, seat, concurrency, taskset))


async def _run(
    name: str, policy: Policy, episodes: int, harness: str, seat: str, concurrency: int, taskset: dict[str, Any]
) -> list[Any]:
    runner = web.AppRunner(_endpoint(policy))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    config = loaders.resolve_env_config(
        {
            "taskset": {"id": name, **taskset},
            seat: {"harness": {"id": harness}, "runtime": {"type": "subprocess"}},
        }
    )
    env = loaders.load_environment(config)
    client = EvalClientConfig(base_url=f"http://127.0.0.1:{port}/v1", api_key_var="NO_KEY")
    context = ModelContext(model="m", client=client)
    limit = asyncio.Semaphore(concurrency)

    async def one(task: Any) -> Any:
        async with limit:
            return await env.run_episode(task, context)

    async with env.serving():
        done = await asyncio.gather(*(one(task) for task in env.taskset.take(episodes)))
    await runner.cleanup()
    return list(done)


def _endpoint(policy: Policy) -> web.Application:
    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        said = policy([{"role": m["role"], "content": m.get("content") or ""} for m in body["messages"]])
        message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
        if not isinstance(said, str):
            call = {"name": said[0], "arguments": json.dumps(said[1])}
            message["tool_calls"] = [{"index": 0, "id": "call_0", "type": "function", "function": call}]
        reason = "stop" if isinstance(said, str) else "tool_calls"
        common = {"id": "x", "created": 0, "model": body["model"]}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return web.json_response({**common, "object": "chat.completion", "choices": [choice]})
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for delta, finish in ((message, None), ({}, reason)):
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            chunk = {**common, "object": "chat.completion.chunk", "choices": choices}
            await stream.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await stream.write(b"data: [DONE]\n\n")
        return stream

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    return app
