"""The end of an engine: closed while it works, or dead."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time

import pytest

from llenvs.inference import SamplingParams
from llenvs.inference.errors import ConnectionFailed, EngineUnavailable
from llenvs_vllm import VLLMBackend

FRANCE = "What is the capital of France?"
GREEDY = SamplingParams(temperature=0.0, max_tokens=3)
ENDLESS = SamplingParams(max_tokens=900, extra={"ignore_eos": True})


def test_closed_started_again_killed(backend: VLLMBackend) -> None:
    async def close_while_busy() -> None:
        await backend.check()
        task = asyncio.create_task(backend.achat(FRANCE, ENDLESS))
        await asyncio.sleep(1.0)
        await backend.aclose()
        with pytest.raises(ConnectionFailed, match="closed"):
            await task

    async def kill_while_busy() -> None:
        task = asyncio.create_task(backend.achat(FRANCE, ENDLESS))
        await asyncio.sleep(1.0)
        for child in multiprocessing.active_children():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(EngineUnavailable, match="died") as caught:
            await task
        assert caught.value.fatal
        with pytest.raises(EngineUnavailable, match="died"):
            await backend.achat(FRANCE, GREEDY)

    asyncio.run(close_while_busy())
    ended = time.monotonic() + 30
    while multiprocessing.active_children():
        assert time.monotonic() < ended, "the engine's process lives on"
        time.sleep(0.1)
    assert backend.chat(FRANCE, GREEDY).text == "The capital of"  # another engine
    asyncio.run(kill_while_busy())
    backend.close()
    backend.close()
