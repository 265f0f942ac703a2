"""Characters that the vocabulary spells with several tokens."""

from __future__ import annotations

import math

import pytest

from llenvs.inference import ChatMessage, FinishReason, Generation, GenerationRequest, SamplingParams
from llenvs.inference.loop import run_sync
from llenvs_llamacpp import LlamaCppBackend
from llenvs_llamacpp.completion import Sample
from llenvs_llamacpp.split_characters import Vocabulary

TEXT = "🦊🐙 日本語 żółć🦊"
IDS = (10813, 116, 228, 10813, 234, 243, 17097, 241, 115, 40993, 179, 120, 248, 18811, 137, 7342, 25954, 27804)
MESSAGES = (ChatMessage.user("Repeat this exactly: 🦊🐙 日本語 żółć"),)


def forced(backend: LlamaCppBackend, **sampling: object) -> Generation:
    parameters = SamplingParams.model_validate({"temperature": 0.0, "max_tokens": 60, **sampling})
    return backend.generate_sync(GenerationRequest(MESSAGES, parameters, grammar=f'root ::= "{TEXT}"'))


def test_every_token_id_is_there(backend: LlamaCppBackend) -> None:
    answer = forced(backend)
    assert answer.text == TEXT
    assert answer.completion_token_ids == (*IDS, 10813, 116, 228, 2)
    assert answer.usage.completion_tokens == 22
    assert backend.detokenize(answer.completion_token_ids[:-1]) == TEXT


def test_an_answer_cut_off_inside_a_character(backend: LlamaCppBackend) -> None:
    answer = forced(backend, max_tokens=4)
    assert answer.text == "🦊"
    assert answer.completion_token_ids == IDS[:4]
    assert answer.finish_reason is FinishReason.LENGTH


def test_logprobs_of_split_characters_are_the_models(backend: LlamaCppBackend) -> None:
    answer = forced(backend, logprobs=3)
    assert answer.completion_token_ids is not None
    assert answer.logprobs is not None
    assert [each.token_id for each in answer.logprobs] == list(answer.completion_token_ids)
    assert all(-30 < each.logprob <= 0 and len(each.top) == 3 for each in answer.logprobs)
    # the alternatives are of the same distribution: no more than the whole of it, best first
    for each in answer.logprobs:
        tops = [logprob for _, logprob in each.top]
        assert tops == sorted(tops, reverse=True)
        assert sum(map(math.exp, tops)) <= 1 + 1e-4
        assert each.logprob <= tops[0] + 1e-4


def test_logprobs_asked_for_afterwards_equal_those_of_the_generation(backend: LlamaCppBackend) -> None:
    from llenvs_llamacpp.split_characters import distribution_of

    request = GenerationRequest(MESSAGES, SamplingParams(temperature=0.0, max_tokens=6, logprobs=2))
    answer = backend.generate_sync(request)
    assert answer.prompt_token_ids is not None
    assert answer.completion_token_ids is not None
    assert answer.logprobs is not None
    for position, token in enumerate(answer.completion_token_ids):
        before = answer.prompt_token_ids + answer.completion_token_ids[:position]

        async def ask(before: tuple[int, ...] = before, token: int = token) -> float:
            client = await backend._client()
            entry = await distribution_of(client, before, token, 2, 49152)
            return float(entry["logprob"])

        assert run_sync(ask()) == pytest.approx(answer.logprobs[position].logprob, abs=5e-4)


def test_repeating_a_sample_gives_the_same_ids(backend: LlamaCppBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    # a vocabulary that knows no way to spell the text: every answer has to be asked for once more
    monkeypatch.setattr(backend, "_vocabulary", Vocabulary({}))
    assert forced(backend).completion_token_ids == (*IDS, 10813, 116, 228, 2)
    with_logprobs = forced(backend, logprobs=0)
    assert with_logprobs.logprobs is not None
    assert [each.token_id for each in with_logprobs.logprobs] == [*IDS, 10813, 116, 228, 2]


def sample(text: str, known: dict[int, int], length: int) -> Sample:
    return Sample(text, dict(known), last={"tokens_predicted": length})


def test_one_reading_of_the_bytes_is_taken() -> None:
    fox = "🦊".encode()
    vocabulary = Vocabulary({1: fox[:2], 2: fox[2:3], 3: fox[3:], 4: b"a", 5: b"", 6: fox[:1], 7: fox[1:2]})
    assert vocabulary.left_out(sample("a🦊", {0: 4, 3: 3, 4: 5}, 5)) == {0: 4, 1: 1, 2: 2, 3: 3, 4: 5}
    assert vocabulary.left_out(sample("🦊", {3: 3}, 4)) == {0: 6, 1: 7, 2: 2, 3: 3}


def test_two_readings_of_the_bytes_are_none() -> None:
    fox = "🦊".encode()
    vocabulary = Vocabulary({1: fox[:1], 2: fox[1:3], 3: fox[:2], 4: fox[2:3], 5: fox[3:]})
    assert vocabulary.left_out(sample("🦊", {2: 5}, 3)) is None
    assert vocabulary.left_out(sample("🦊", {1: 5}, 2)) is None  # no token has the first three bytes
    assert vocabulary.left_out(sample("", {}, 2)) is None  # cut off inside a character
