"""Event loops, threads, waiting and cancelling."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import httpx
import pytest

from llenvs.inference import ChatMessage, GenerationRequest, SamplingParams
from llenvs.inference.errors import ConnectionFailed
from llenvs_llamacpp import LlamaCppBackend

FRANCE = "What is the capital of France?"
SHORT = SamplingParams(temperature=0.0, max_tokens=4)
ENDLESS = SamplingParams(temperature=0.0, max_tokens=1900, extra={"ignore_eos": True})


def request(text: str, sampling: SamplingParams = SHORT) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling)


def busy_slots(backend: LlamaCppBackend) -> int:
    headers = {"Authorization": f"Bearer {backend.api_key}", "Connection": "close"}
    slots = httpx.get(f"{backend.server.url}/slots", headers=headers, trust_env=False).json()
    return sum(slot["is_processing"] for slot in slots)


async def until_busy(backend: LlamaCppBackend, count: int, patience: float = 20.0) -> None:
    waited = time.monotonic() + patience
    while await asyncio.to_thread(busy_slots, backend) != count:
        assert time.monotonic() < waited, f"the number of busy slots did not become {count}"
        await asyncio.sleep(0.02)


def test_one_backend_over_several_loops(backend: LlamaCppBackend) -> None:
    texts = [asyncio.run(backend.generate(request(FRANCE))).text for _ in range(3)]
    assert texts == ["L'Éto"] * 3
    assert backend.generate_sync(request(FRANCE)).text == texts[0]


def test_sync_calls_inside_a_running_loop(backend: LlamaCppBackend) -> None:
    async def notebook() -> str:
        return backend.chat(FRANCE, SHORT).text

    assert asyncio.run(notebook()) == "L'Éto"


def test_from_several_threads_at_once(model_path: Path) -> None:
    # the first requests, which all want the engine started
    with LlamaCppBackend(model_path, n_ctx=512, slots=2) as backend:
        texts: list[str] = []
        threads = [
            threading.Thread(target=lambda: texts.append(backend.chat(FRANCE, SHORT).text)) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["L'Éto"] * 6


def test_more_requests_than_slots_wait_their_turn(backend: LlamaCppBackend) -> None:
    questions = [f"What is {i} plus 1?" for i in range(40)]
    answers = backend.chat_batch(questions, SHORT)
    assert [a.text for a in answers[:3]] == [backend.chat(q, SHORT).text for q in questions[:3]]
    assert len(answers) == 40


def test_cancelling_frees_the_slot(backend: LlamaCppBackend) -> None:
    async def cancel_one() -> None:
        task = asyncio.create_task(backend.generate(request("Tell me a long story.", ENDLESS)))
        await until_busy(backend, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_busy(backend, 0)

    asyncio.run(cancel_one())
    assert backend.chat(FRANCE, SHORT).text == "L'Éto"


def test_cancelling_while_waiting_for_a_slot(backend: LlamaCppBackend) -> None:
    async def cancel_all() -> None:
        tasks = [asyncio.create_task(backend.generate(request(f"Story {i}", ENDLESS))) for i in range(12)]
        await until_busy(backend, 4)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        await until_busy(backend, 0)
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(busy_slots, backend) == 0  # nothing of what waited starts afterwards

    asyncio.run(cancel_all())


def test_a_timed_out_task_frees_the_slot(backend: LlamaCppBackend) -> None:
    async def time_out() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await backend.sample(request("Tell me a long story.", ENDLESS), 3)
        await until_busy(backend, 0)

    asyncio.run(time_out())


def test_closing_twice_and_starting_again(model_path: Path) -> None:
    backend = LlamaCppBackend(model_path, n_ctx=256, slots=1)
    backend.close()  # never started
    assert backend.chat(FRANCE, SHORT).text == "L'Éto"
    first = backend.base_url
    backend.close()
    backend.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(first, trust_env=False)
    assert backend.chat(FRANCE, SHORT).text == "L'Éto"
    backend.close()


def test_closing_ends_requests_under_way(model_path: Path) -> None:
    async def close_while_busy() -> None:
        backend = LlamaCppBackend(model_path, n_ctx=2048, slots=1)
        task = asyncio.create_task(backend.generate(request("Tell me a long story.", ENDLESS)))
        while backend._running is None:
            await asyncio.sleep(0.02)
        await until_busy(backend, 1)
        await backend.aclose()
        with pytest.raises(ConnectionFailed):
            await task

    asyncio.run(close_while_busy())


def test_closing_from_another_loop(model_path: Path) -> None:
    backend = LlamaCppBackend(model_path, n_ctx=256, slots=1)
    assert backend.chat(FRANCE, SHORT).text == "L'Éto"  # on the shared loop
    asyncio.run(backend.aclose())
    assert backend._running is None


def test_the_engine_asks_for_its_key(backend: LlamaCppBackend) -> None:
    assert httpx.get(f"{backend.server.url}/slots", trust_env=False).status_code == 401
    assert backend.base_url == f"{backend.server.url}/v1"


def test_two_backends_beside_each_other(backend: LlamaCppBackend, model_path: Path) -> None:
    with LlamaCppBackend(model_path, n_ctx=256, slots=1) as other:
        assert other.base_url != backend.base_url
        assert other.chat(FRANCE, SHORT).text == backend.chat(FRANCE, SHORT).text
