"""Values seen at llama.cpp itself, with the default model and its own chat template."""

from __future__ import annotations

import asyncio

import pytest

from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.testing.small_model import FRANCE, IN_LLAMACPP, SEA, RightAnswer
from llenvs_llamacpp import LlamaCppBackend

# logits move by about 1e-5 with what is cached of the prompt
CLOSE = {"abs": 5e-4}
GREEDY = SamplingParams(temperature=0.0, max_tokens=64, logprobs=1)


def asked(text: str, sampling: SamplingParams = GREEDY, **fields: object) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("right", IN_LLAMACPP[1:], ids=lambda right: right.question)
def test_greedy(backend: LlamaCppBackend, right: RightAnswer) -> None:
    answer = backend.generate_sync(asked(right.question))
    assert answer.text == right.text
    assert answer.finish_reason is FinishReason.STOP
    assert answer.prompt_token_ids is not None
    assert answer.completion_token_ids is not None
    assert answer.logprobs is not None
    assert len(answer.prompt_token_ids) == answer.usage.prompt_tokens == right.prompt_tokens
    assert len(answer.completion_token_ids) == answer.usage.completion_tokens == right.tokens
    assert answer.completion_token_ids[: len(right.first_ids)] == right.first_ids
    assert answer.completion_token_ids[-1] == 2  # the end-of-turn token belongs to the ids, not to the text
    assert [each.token_id for each in answer.logprobs] == list(answer.completion_token_ids)
    assert answer.logprobs[0].logprob == pytest.approx(right.first_logprob, **CLOSE)


def test_logprobs_and_alternatives(backend: LlamaCppBackend) -> None:
    answer = backend.generate_sync(asked(FRANCE, GREEDY.model_copy(update={"max_tokens": 12, "logprobs": 2})))
    assert answer.text.startswith("L'Étoile, la Marseillaise")
    assert answer.finish_reason is FinishReason.LENGTH
    assert answer.completion_token_ids is not None
    assert answer.completion_token_ids[:3] == (60, 23, 39614)
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 12
    first = answer.logprobs[0]
    assert (first.token, first.token_id) == ("L", 60)
    assert [token for token, _ in first.top] == ["L", "The"]
    assert [logprob for _, logprob in first.top] == pytest.approx([-1.8529, -2.0096], **CLOSE)


def test_no_logprobs_unless_asked_for(backend: LlamaCppBackend) -> None:
    answer = backend.generate_sync(asked(FRANCE, SamplingParams(temperature=0.0, max_tokens=2)))
    assert answer.logprobs is None
    chosen_only = backend.generate_sync(asked(FRANCE, SamplingParams(temperature=0.0, max_tokens=2, logprobs=0)))
    assert chosen_only.logprobs is not None
    assert [each.top for each in chosen_only.logprobs] == [(), ()]
    assert chosen_only.logprobs[0].logprob == pytest.approx(-1.8529, **CLOSE)


def test_prefix_is_continued_and_not_repeated(backend: LlamaCppBackend) -> None:
    answer = backend.generate_sync(asked(FRANCE, prefix="The capital of"))
    assert answer.text == " France is Paris."
    assert answer.completion_token_ids == (4649, 314, 7042, 30, 2)
    assert answer.prompt_token_ids is not None
    assert len(answer.prompt_token_ids) == 37 + 3
    assert answer.prompt_token_ids[-3:] == (504, 3575, 282)


def test_stop_strings(backend: LlamaCppBackend) -> None:
    answer = backend.generate_sync(asked(FRANCE, GREEDY.model_copy(update={"stop": ("la",)})))
    assert answer.text == "L'Étoile, "
    assert answer.finish_reason is FinishReason.STOP
    assert answer.usage.completion_tokens == 7
    assert answer.metadata["stop"] == "la"
    # a stop string of several tokens: they are all in the ids, each with a logprob
    answer = backend.generate_sync(asked(FRANCE, GREEDY.model_copy(update={"stop": ("Paris", "Mars")})))
    assert answer.text == "L'Étoile, la "
    assert answer.completion_token_ids is not None
    assert answer.completion_token_ids[-3:] == (2618, 2828, 313)
    assert answer.logprobs is not None
    assert [each.token_id for each in answer.logprobs] == list(answer.completion_token_ids)


def test_grammar(backend: LlamaCppBackend) -> None:
    grammar = 'root ::= "<answer>" [0-9]+ "</answer>"'
    answer = backend.generate_sync(asked("How many legs do 3 cows have?", grammar=grammar))
    assert answer.text == "<answer>1</answer>"
    assert answer.usage.prompt_tokens == 39
    assert answer.usage.completion_tokens == 15
    # logprobs are of the model's own distribution, in which the forced token was very unlikely
    assert answer.logprobs is not None
    assert answer.logprobs[0].logprob == pytest.approx(-12.297, abs=5e-3)


def test_json_schema(backend: LlamaCppBackend) -> None:
    schema = {"type": "integer", "minimum": 3, "maximum": 5}
    assert backend.generate_sync(asked("Give me a number.", json_schema=schema)).text in {"3", "4", "5"}


def test_seeds_with_the_engines_truncation(backend: LlamaCppBackend) -> None:
    truncated = SamplingParams(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, max_tokens=24)
    texts = [backend.generate_sync(asked(SEA, truncated.with_seed(seed))).text for seed in (7, 8)]
    assert texts[0].startswith("The sea's a mysterious and wondrous place")
    assert texts[1].startswith("The sea is a majestic, ethereal creature")


def test_what_is_open_means_the_models_own_distribution(backend: LlamaCppBackend) -> None:
    bare = backend.generate_sync(asked(SEA, SamplingParams(seed=7, max_tokens=12)))
    explicit = SamplingParams(seed=7, max_tokens=12, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    assert bare.text == backend.generate_sync(asked(SEA, explicit)).text
    # the engine's own defaults (top_k 40, top_p 0.95, min_p 0.05) would give "The sea's a mysterious ..."
    assert bare.text.startswith("The sea lies at the very heart of a planet")


def test_defaults_of_the_backend_fill_what_a_request_leaves_open(model_path: object) -> None:
    greedy = SamplingParams(temperature=0.0, max_tokens=64)
    with LlamaCppBackend(str(model_path), n_ctx=512, slots=1, sampling=greedy) as backend:
        assert backend.chat("Is 17 a prime number? Answer yes or no.").text == "No."


def test_n_samples_use_consecutive_seeds_in_one_request_or_several(backend: LlamaCppBackend) -> None:
    sampling = SamplingParams(seed=7, max_tokens=12, logprobs=0)

    async def six() -> tuple[list[str], list[str], list[int]]:
        samples = await backend.sample(asked(SEA, sampling), 6)  # 4 slots: a request of 4 and one of 2
        singles = [await backend.generate(asked(SEA, sampling.with_seed(7 + i))) for i in range(6)]
        assert [s.completion_token_ids for s in samples] == [s.completion_token_ids for s in singles]
        assert [s.metadata["seed"] for s in samples] == [7, 8, 9, 10, 11, 12]
        return [s.text for s in samples], [s.text for s in singles], [s.usage.prompt_tokens for s in samples]

    samples, singles, prompt_tokens = asyncio.run(six())
    assert samples == singles
    assert len(set(samples)) == 6
    assert prompt_tokens == [37, 0, 0, 0, 0, 0]


def test_same_seed_same_text_beside_other_requests(backend: LlamaCppBackend) -> None:
    request = asked(SEA, SamplingParams(seed=11, max_tokens=16))
    alone = backend.generate_sync(request)

    async def together() -> list[str]:
        others = [asked(FRANCE, SamplingParams(seed=i, max_tokens=16)) for i in range(6)]
        answers = await asyncio.gather(*(backend.generate(each) for each in [request, *others, request]))
        return [answers[0].text, answers[-1].text]

    assert asyncio.run(together()) == [alone.text] * 2


def test_a_drawn_seed_is_noted_and_repeats_the_sample(backend: LlamaCppBackend) -> None:
    drawn = backend.generate_sync(asked(SEA, SamplingParams(max_tokens=16)))
    again = backend.generate_sync(asked(SEA, SamplingParams(max_tokens=16, seed=drawn.metadata["seed"])))
    assert again.completion_token_ids == drawn.completion_token_ids


def test_a_second_turn_reuses_the_first_ones_tokens(backend: LlamaCppBackend) -> None:
    first = backend.generate_sync(asked("What is 7 times 8?"))
    messages = (ChatMessage.user("What is 7 times 8?"), first.to_message(), ChatMessage.user("And 7 times 9?"))
    second = backend.generate_sync(GenerationRequest(messages, SamplingParams(temperature=0.0, max_tokens=1)))
    assert first.prompt_token_ids is not None
    assert first.completion_token_ids is not None
    assert second.prompt_token_ids is not None
    so_far = first.prompt_token_ids + first.completion_token_ids
    assert len(so_far) == 81
    assert second.prompt_token_ids[:81] == so_far
    assert len(second.prompt_token_ids) == 98
    assert second.usage.cached_tokens == 80


def test_top_k_min_p_and_penalties_act(backend: LlamaCppBackend) -> None:
    greedy = SamplingParams(temperature=0.0, max_tokens=26)
    repeating = backend.generate_sync(asked(SEA, greedy))
    hot = SamplingParams(temperature=2.0, seed=1, max_tokens=26)
    assert backend.generate_sync(asked(SEA, hot)).text != repeating.text
    for only_the_best in ({"top_k": 1}, {"min_p": 1.0}, {"top_p": 1e-6}):
        one = hot.model_copy(update=only_the_best)
        assert backend.generate_sync(asked(SEA, one)).completion_token_ids == repeating.completion_token_ids
    # "a vast and mysterious realm" comes twice, unless what was said costs
    assert repeating.text.count("vast and mysterious") == 2
    for penalty in ("presence_penalty", "frequency_penalty"):
        costly = greedy.model_copy(update={penalty: 2.0})
        assert backend.generate_sync(asked(SEA, costly)).text.count("vast and mysterious") <= 1
