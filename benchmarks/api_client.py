"""1,000 chat requests at once through OpenAIBackend, against a local server that refuses and hangs up.

The server, in a process of its own, answers 10 % of the requests with 429 and Retry-After, and drops the
connection of 2 %. Shown: whether all were answered, whether any came back before the time it was told to wait, how
many were in flight at most, and the processor time of this process for each answered request.
Target: at most 2 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
import urllib.request
from typing import Any

REQUESTS = 1_000
CONCURRENCY = 64
REFUSED, DROPPED = 0.10, 0.02
RETRY_AFTER = 1.0  # seconds
LATENCY = 0.02  # seconds that an answer takes


class FlakyServer:
    """Chat Completions with faults, and what was seen of the client at ``/stats``."""

    def __init__(self) -> None:
        self.random = random.Random(7)
        self.in_flight = self.most_in_flight = 0
        self.counts = {"answered": 0, "refused": 0, "dropped": 0, "too_early": 0}
        self.told_to_wait: dict[str, float] = {}

    async def serve(self) -> None:
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = 0
                for line in head.split(b"\r\n")[1:]:
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                body = await reader.readexactly(length)
                if head.startswith(b"GET /stats"):
                    answer = self.http(200, {**self.counts, "most_in_flight": self.most_in_flight})
                else:
                    answer = await self.completion(json.loads(body)["messages"][-1]["content"])
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client closed the connection
        writer.close()

    async def completion(self, question: str) -> bytes | None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if time.monotonic() < self.told_to_wait.pop(question, 0.0):
            self.counts["too_early"] += 1
        await asyncio.sleep(LATENCY)
        self.in_flight -= 1
        drawn = self.random.random()
        if drawn < DROPPED:
            self.counts["dropped"] += 1
            return None
        if drawn < DROPPED + REFUSED:
            self.counts["refused"] += 1
            self.told_to_wait[question] = time.monotonic() + RETRY_AFTER
            error = {
                "message": "Rate limit reached",
                "type": "requests",
                "param": None,
                "code": "rate_limit_exceeded",
            }
            return self.http(429, {"error": error}, f"Retry-After: {RETRY_AFTER:g}\r\n")
        self.counts["answered"] += 1
        message = {"role": "assistant", "content": f"answer to {question}", "refusal": None}
        return self.http(
            200,
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1_700_000_000,
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
            },
        )

    @staticmethod
    def http(status: int, data: Any, headers: str = "") -> bytes:
        body = json.dumps(data).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"HTTP/1.1 {status} X\r\n{kind}{headers}\r\n".encode() + body


async def measure(port: int) -> tuple[list[str], float, float]:
    """The texts of the answers; processor and wall time in seconds."""
    from llenvs_openai import OpenAIBackend

    async with OpenAIBackend("m", base_url=f"http://127.0.0.1:{port}/v1", max_concurrency=CONCURRENCY) as backend:
        await backend.achat("warm up: the imports and first connections")
        processor, wall = time.process_time(), time.perf_counter()
        answers = await asyncio.gather(*(backend.achat(f"question {i}") for i in range(REQUESTS)))
        return [each.text for each in answers], time.process_time() - processor, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().serve:
        asyncio.run(FlakyServer().serve())
        return
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        texts, processor, wall = asyncio.run(measure(port))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats") as answer:
            seen = json.load(answer)
    finally:
        server.terminate()
        server.wait()
    right = sum(text == f"answer to question {i}" for i, text in enumerate(texts))
    print(f"answered rightly        {right} of {REQUESTS}")
    print(f"refused with 429        {seen['refused']}, of which came back too early: {seen['too_early']}")
    print(f"connections dropped     {seen['dropped']}")
    print(f"most in flight          {seen['most_in_flight']} (max_concurrency {CONCURRENCY})")
    print(f"processor time          {processor / REQUESTS * 1000:.2f} ms for each answered request")
    print(f"wall time               {wall:.1f} s")


if __name__ == "__main__":
    main()
