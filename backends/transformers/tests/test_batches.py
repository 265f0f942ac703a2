"""Many requests at once, waiting, cancelling, closing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from llenvs.inference import ChatMessage, FinishReason, Generation, GenerationRequest, SamplingParams
from llenvs.inference.errors import BadRequest, ConnectionFailed, ContextOverflow, ProviderFailed
from llenvs_transformers import HuggingFaceBackend

FRANCE = "What is the capital of France?"
SEA = "Write one sentence about the sea."
QUESTIONS = [FRANCE, SEA, "Is 17 a prime number? Answer yes or no.", "Say hi.", "What is 7 times 8? " * 6]
ENDLESS = SamplingParams(max_tokens=4000, extra={"ignore_eos": True})


def request(text: str, sampling: SamplingParams) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling)


def ids(answer: Generation) -> tuple[int, ...]:
    assert answer.completion_token_ids is not None
    return answer.completion_token_ids


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=0.0, max_tokens=12, logprobs=1),
        SamplingParams(temperature=1.0, max_tokens=12, seed=11, logprobs=1),
        SamplingParams(temperature=0.9, top_p=0.9, top_k=50, min_p=0.01, max_tokens=12, seed=3, logprobs=1),
        SamplingParams(temperature=1.2, frequency_penalty=0.8, presence_penalty=0.5, max_tokens=12, seed=5),
    ],
)
def test_a_batch_equals_one_by_one(backend: HuggingFaceBackend, sampling: SamplingParams) -> None:
    together = backend.chat_batch(QUESTIONS, sampling)
    alone = [backend.chat(question, sampling) for question in QUESTIONS]
    assert [ids(answer) for answer in together] == [ids(answer) for answer in alone]
    for one, other in zip(together, alone, strict=True):
        for left, right in zip(one.logprobs or (), other.logprobs or (), strict=True):
            assert left.logprob == pytest.approx(right.logprob, abs=1e-3)


def test_rows_keep_their_own_parameters(backend: HuggingFaceBackend) -> None:
    async def mixed() -> list[Generation]:
        return list(
            await asyncio.gather(
                backend.generate(request(FRANCE, SamplingParams(temperature=0.0, max_tokens=20))),
                backend.generate(request(FRANCE, SamplingParams(temperature=0.0, max_tokens=3, logprobs=0))),
                backend.generate(request(FRANCE, SamplingParams(temperature=0.0, stop=("France",)))),
                backend.generate(request(SEA, SamplingParams(seed=4, max_tokens=9))),
            )
        )

    whole, short, stopped, sampled = asyncio.run(mixed())
    assert whole.text == "The capital of France is Paris."
    assert (short.text, short.finish_reason) == ("The capital of", FinishReason.LENGTH)
    assert whole.logprobs is None
    assert len(short.logprobs or ()) == 3
    assert stopped.text == "The capital of "
    assert ids(sampled) == ids(backend.chat(SEA, SamplingParams(seed=4, max_tokens=9)))


def test_seeds(backend: HuggingFaceBackend) -> None:
    sampling = SamplingParams(temperature=1.0, max_tokens=10, seed=7)
    samples = asyncio.run(backend.sample(request(SEA, sampling), 3))
    assert [sample.metadata["seed"] for sample in samples] == [7, 8, 9]
    assert [ids(sample) for sample in samples] == [
        ids(backend.chat(SEA, sampling.with_seed(seed))) for seed in (7, 8, 9)
    ]
    assert len({ids(sample) for sample in samples}) == 3
    drawn = backend.chat(SEA, sampling.with_seed(None))
    assert ids(backend.chat(SEA, sampling.with_seed(drawn.metadata["seed"]))) == ids(drawn)


def test_more_requests_than_a_batch_holds(model_folder: Path) -> None:
    with HuggingFaceBackend(model_folder, device="cpu", threads=1, max_batch=3) as backend:
        answers = backend.chat_batch([FRANCE] * 8, SamplingParams(temperature=0.0, max_tokens=4))
        assert [answer.text for answer in answers] == ["The capital of France"] * 8


def test_cancelling_ends_the_row(backend: HuggingFaceBackend) -> None:
    async def cancel_one() -> None:
        endless = asyncio.create_task(backend.generate(request(SEA, ENDLESS)))
        waiting = asyncio.create_task(backend.generate(request(SEA, ENDLESS)))
        await asyncio.sleep(1.0)
        # the next request waits behind the endless ones, until they are cancelled
        after = asyncio.create_task(backend.achat(FRANCE, SamplingParams(temperature=0.0, max_tokens=4)))
        await asyncio.sleep(0.5)
        assert not after.done()
        for task in (endless, waiting):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await after).text == "The capital of France"

    asyncio.run(cancel_one())


def test_closing_ends_requests_and_a_later_one_loads_again(model_folder: Path) -> None:
    async def close_while_busy(backend: HuggingFaceBackend) -> None:
        task = asyncio.create_task(backend.generate(request(SEA, ENDLESS)))
        while backend._running is None:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        await backend.aclose()
        with pytest.raises(ConnectionFailed, match="closed"):
            await task

    backend = HuggingFaceBackend(model_folder, device="cpu", threads=1)
    backend.close()  # never loaded
    asyncio.run(close_while_busy(backend))
    assert backend.chat(FRANCE, SamplingParams(temperature=0.0, max_tokens=2)).text == "The capital"
    backend.close()
    backend.close()


def test_the_context(model_folder: Path) -> None:
    with HuggingFaceBackend(model_folder, device="cpu", threads=1, n_ctx=40) as backend:
        answer = backend.chat(FRANCE, SamplingParams(temperature=0.0))
        assert (answer.text, answer.finish_reason) == ("The capital of", FinishReason.LENGTH)
        assert answer.metadata["context_full"] is True
        with pytest.raises(ContextOverflow, match="context of 40"):
            backend.chat(FRANCE * 3)


def test_messages_that_the_template_refuses(model_folder: Path) -> None:
    template = "{{ raise_exception('roles must alternate') }}"
    with (
        HuggingFaceBackend(model_folder, device="cpu", threads=1, chat_template=template) as backend,
        pytest.raises(BadRequest, match="roles must alternate"),
    ):
        backend.chat("hi")


def test_an_error_of_torch_is_said_and_the_next_request_works(backend: HuggingFaceBackend) -> None:
    def fail(module: object, arguments: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: not enough memory")

    backend.chat("hi", SamplingParams(max_tokens=1))
    assert backend._running is not None
    hook = backend._running.loaded.model.register_forward_pre_hook(fail)
    try:
        with pytest.raises(ProviderFailed, match=r"generation failed.*not enough memory.*smaller max_batch"):
            backend.chat("hi", SamplingParams(max_tokens=1))
    finally:
        hook.remove()
    assert backend.chat(FRANCE, SamplingParams(temperature=0.0, max_tokens=2)).text == "The capital"


def test_answers_are_kept_by_what_decides_them(model_folder: Path, tmp_path: Path) -> None:
    sampling = SamplingParams(temperature=0.0, max_tokens=3)
    with HuggingFaceBackend(model_folder, device="cpu", threads=1).use(cache=tmp_path) as backend:
        first = backend.chat(FRANCE, sampling)
    with HuggingFaceBackend(model_folder, device="cpu", threads=1).use(cache=tmp_path) as again:
        assert again.chat(FRANCE, sampling).completion_token_ids == first.completion_token_ids
        assert again._running is None  # nothing was loaded
        assert again.identity() == backend.identity()
    others = [
        HuggingFaceBackend(model_folder, device="cpu", threads=1, dtype="bfloat16"),
        HuggingFaceBackend(model_folder, device="cpu", threads=1, parse_special=True),
        HuggingFaceBackend(model_folder, device="cpu", threads=1, sampling=SamplingParams(top_k=3)),
    ]
    assert all(other.identity() != backend.identity() for other in others)
