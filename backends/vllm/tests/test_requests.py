"""Seeds, samples, limits, loops, cancelling, refusals."""

from __future__ import annotations

import asyncio
import base64

import pytest

from llenvs.core import ToolDefinition
from llenvs.core.errors import UnknownOption
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, ImageContent, SamplingParams
from llenvs.inference.errors import BadRequest, ContextOverflow, UnsupportedFeature
from llenvs_vllm import VLLMBackend

FRANCE = "What is the capital of France?"
SEA = "Write one sentence about the sea."
ENDLESS = SamplingParams(max_tokens=900, extra={"ignore_eos": True})


def request(text: str, sampling: SamplingParams, **fields: object) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


def test_samples_and_seeds(backend: VLLMBackend) -> None:
    sampling = SamplingParams(temperature=1.0, max_tokens=10, seed=7)
    samples = asyncio.run(backend.sample(request(SEA, sampling), 3))
    assert [sample.metadata["seed"] for sample in samples] == [7, 8, 9]
    again = [backend.chat(SEA, sampling.with_seed(seed)) for seed in (7, 8, 9)]
    assert [sample.completion_token_ids for sample in samples] == [each.completion_token_ids for each in again]
    assert len({sample.text for sample in samples}) == 3
    assert [sample.usage.prompt_tokens for sample in samples] == [37, 0, 0]


def test_a_batch_equals_one_by_one(backend: VLLMBackend) -> None:
    sampling = SamplingParams(temperature=0.9, top_p=0.9, top_k=50, min_p=0.01, max_tokens=12, seed=3)
    questions = [FRANCE, SEA, "Say hi.", "What is 7 times 8?"]
    together = backend.chat_batch(questions, sampling)
    alone = [backend.chat(question, sampling) for question in questions]
    assert [each.completion_token_ids for each in together] == [each.completion_token_ids for each in alone]


def test_several_loops_share_the_engine(backend: VLLMBackend) -> None:
    greedy = SamplingParams(temperature=0.0, max_tokens=3)
    texts = [asyncio.run(backend.achat(FRANCE, greedy)).text for _ in range(3)]
    assert [*texts, backend.chat(FRANCE, greedy).text] == ["The capital of"] * 4


def test_the_context(backend: VLLMBackend) -> None:
    long = "word " * 1000
    with pytest.raises(ContextOverflow, match="context of 1024"):
        backend.chat(long)
    answer = backend.chat("word " * 985, SamplingParams(temperature=0.0, extra={"ignore_eos": True}))
    assert answer.finish_reason is FinishReason.LENGTH
    assert answer.metadata["context_full"] is True
    assert answer.usage.total_tokens == 1024


def test_cancelling_frees_the_request(backend: VLLMBackend) -> None:
    async def cancel_one() -> None:
        task = asyncio.create_task(backend.achat(SEA, ENDLESS))
        unfinished = backend._running.llm.get_num_unfinished_requests  # type: ignore[union-attr]
        while unfinished() != 1:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(30):
            while unfinished() != 0:
                await asyncio.sleep(0.02)

    asyncio.run(backend.check())
    asyncio.run(cancel_one())


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": "root ::= nonsense("},
        {"json_schema": {"type": "nonsense"}},
        {"grammar": 'root ::= "a"', "json_schema": {"type": "object"}},
        {"tools": (ToolDefinition("add"),), "tool_choice": "multiply"},
        {"tools": (ToolDefinition("add"),), "tool_choice": "required", "grammar": 'root ::= "a"'},
    ],
)
def test_what_cannot_be_done_is_a_bad_request(backend: VLLMBackend, fields: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        backend.generate_sync(request("x", SamplingParams(max_tokens=4), **fields))


def test_extra(backend: VLLMBackend) -> None:
    with pytest.raises(UnknownOption, match="min_tokens"):
        backend.chat("x", SamplingParams(extra={"min_token": 3}))
    with pytest.raises(UnknownOption):
        backend.chat("x", SamplingParams(extra={"n": 3}))
    with pytest.raises(BadRequest):
        backend.chat("x", SamplingParams(max_tokens=4, extra={"min_tokens": 30}))
    answer = backend.chat(FRANCE, SamplingParams(temperature=0.0, max_tokens=30, extra={"stop_token_ids": [314]}))
    assert answer.text == "The capital of France"
    assert answer.completion_token_ids is not None
    assert answer.completion_token_ids[-1] == 314


def test_a_model_without_eyes_refuses_images(backend: VLLMBackend) -> None:
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    message = ChatMessage.user("What is this?", (ImageContent(data=pixel),))
    with pytest.raises(UnsupportedFeature, match="images"):
        backend.generate_sync(GenerationRequest((message,)))
    assert backend.capabilities.images is False
