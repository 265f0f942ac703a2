"""Scheduling under long-tail latency: 2,000 single-turn tasks, 64 in flight, against a local HTTP server.

The server (a process of its own) answers task i after a latency drawn from a lognormal distribution; one in two
hundred is a straggler of 20 times the median. Compared are the wall time of an evaluation, of the same tasks in
lockstep batches of 64, and the ideal: greedy list scheduling of the very same latencies, computed.
Target: at most 1.15 x the ideal.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from llenvs.core import EnvironmentSpec, Generation, Observation, Signal, SingleTurnEnvironment, Start, Usage
from llenvs.core.extraction import make_extractor
from llenvs.evaluation import TrajectoryRunner, run_evaluation
from llenvs.inference import Backend, GenerationRequest

SIGMA = 0.8


def latencies(tasks: int, median: float) -> list[float]:
    draw = random.Random(0)
    drawn = [median * draw.lognormvariate(0.0, SIGMA) for _ in range(tasks)]
    for straggler in draw.sample(range(tasks), max(1, tasks // 200)):
        drawn[straggler] = 20 * median
    return drawn


def list_schedule(seconds: Sequence[float], machines: int) -> float:
    """Makespan when each job goes to the machine that is free first."""
    free = [0.0] * machines
    for each in seconds:
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free)


def lockstep_schedule(seconds: Sequence[float], machines: int) -> float:
    return sum(max(seconds[i : i + machines]) for i in range(0, len(seconds), machines))


class Echo(SingleTurnEnvironment[str]):
    """Task i asks for i."""

    def __init__(self, tasks: int) -> None:
        super().__init__(EnvironmentSpec("echo", "benchmark", success_signal="score"), make_extractor("raw"))
        self._tasks = tasks

    @property
    def num_tasks(self) -> int:
        return self._tasks

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(str(task_index)), str(task_index))

    def _score(self, hidden: str, answer: str | None) -> Iterable[Signal]:
        yield Signal("score", reward=float(answer == hidden))


class HttpxBackend(Backend):
    """The least that can speak to the server, for a machine without the OpenAI backend."""

    name = "httpx"

    def __init__(self, base_url: str, max_concurrency: int) -> None:
        import httpx

        super().__init__("echo", max_concurrency=max_concurrency)
        limits = httpx.Limits(max_connections=max_concurrency)
        self._client = httpx.AsyncClient(base_url=base_url, timeout=None, limits=limits)

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        response = await self._client.post("/chat/completions", json={"model": self.model, "messages": messages})
        text = response.json()["choices"][0]["message"]["content"]
        return [Generation(text, usage=Usage(1, 1))]


def make_backend(kind: str, port: int, concurrency: int) -> Backend:
    base_url = f"http://127.0.0.1:{port}/v1"
    if kind == "httpx":
        return HttpxBackend(base_url, concurrency)
    from llenvs.inference.backends import OpenAIBackend

    backend: Backend = OpenAIBackend("echo", base_url=base_url, api_key="none", max_concurrency=concurrency)
    return backend


async def serve(seconds: Sequence[float]) -> None:
    """Enough of HTTP/1.1 and of OpenAI's Chat Completions for a well-behaved client."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.split("content-length:")[1].split("\r\n")[0]) if "content-length:" in head else 0
                body = await reader.readexactly(length)
                if head.startswith("post"):
                    task = json.loads(body)["messages"][-1]["content"]
                    await asyncio.sleep(seconds[int(task)])
                    message = {"role": "assistant", "content": task}
                    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
                    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                    answer: Any = {"id": task, "object": "chat.completion", "created": 0, "model": "echo"}
                    answer |= {"choices": [choice], "usage": usage}
                else:
                    answer = {"object": "list", "data": [{"id": "echo", "object": "model", "created": 0}]}
                payload = json.dumps(answer).encode()
                start = (
                    f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n"
                )
                writer.write(start.encode() + payload)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent is gone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--median", type=float, default=0.5, help="median latency in seconds")
    parser.add_argument("--backend", choices=["openai", "httpx"], default=None)
    parser.add_argument("--quick", action="store_true", help="320 tasks of half the latency")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.tasks, args.median = 320, 0.25
    seconds = latencies(args.tasks, args.median)
    if args.serve:
        asyncio.run(serve(seconds))
        return
    kind = args.backend or ("openai" if find_spec("llenvs_openai.backend") else "httpx")
    command = [sys.executable, __file__, "--serve", "--tasks", str(args.tasks), "--median", str(args.median)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        backend = make_backend(kind, port, args.concurrency)
        environment = Echo(args.tasks)
        backend.chat("0")  # the client library is imported with the first request; that is no scheduling
        began, cpu_before = time.perf_counter(), time.process_time()
        result = run_evaluation(environment, backend, batch_size=args.concurrency, log=())
        ours, cpu = time.perf_counter() - began, time.process_time() - cpu_before
        assert result.success_rate == 1.0, result
        runner = TrajectoryRunner(environment, backend, batch_size=args.concurrency)
        began = time.perf_counter()
        for first in range(0, args.tasks, args.concurrency):
            runner.run_batch(range(first, min(first + args.concurrency, args.tasks)))
        lockstep = time.perf_counter() - began
        backend.close()
        assert server.stdin is not None
        server.stdin.close()
    ideal = list_schedule(seconds, args.concurrency)
    print(f"{args.tasks} tasks, {args.concurrency} in flight, backend {kind}, median latency {args.median} s")
    print(f"CPU time {1000 * cpu / args.tasks:.1f} ms a request, load average {os.getloadavg()[0]:.1f}")
    print(f"ideal (greedy list scheduling)  {ideal:7.2f} s   1.00 x")
    print(f"run_evaluation                  {ours:7.2f} s   {ours / ideal:.2f} x")
    print(f"lockstep batches                {lockstep:7.2f} s   {lockstep / ideal:.2f} x")
    print(f"lockstep batches, computed      {lockstep_schedule(seconds, args.concurrency):7.2f} s")


if __name__ == "__main__":
    main()
