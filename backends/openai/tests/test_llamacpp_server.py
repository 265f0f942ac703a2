"""Against a real server: llama.cpp's own OpenAI API on 127.0.0.1, with the default model."""

from __future__ import annotations

import asyncio
import json

import pytest

from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.inference.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContextOverflow,
    ModelNotFound,
)
from llenvs.testing.small_model import FRANCE, IN_LLAMACPP, PRIME, SEA, SEVEN_TIMES_EIGHT, RightAnswer
from llenvs_llamacpp import LlamaCppBackend
from llenvs_openai import OpenAIBackend

GREEDY = SamplingParams(temperature=0.0, max_tokens=12)


def request(text: str = FRANCE, sampling: SamplingParams = GREEDY, **fields: object) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


def test_chat(backend: OpenAIBackend, llamacpp: LlamaCppBackend) -> None:
    answer = backend.generate_sync(request())
    assert answer.text.startswith("L'Étoile, la Marseillaise")
    assert answer.finish_reason is FinishReason.LENGTH
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (37, 12)
    assert answer.model == llamacpp.model
    assert answer.latency > 0
    answer = backend.chat(PRIME, GREEDY)
    assert (answer.text, answer.finish_reason) == ("No.", FinishReason.STOP)


@pytest.mark.parametrize("right", IN_LLAMACPP, ids=lambda right: right.question)
def test_right_values(backend: OpenAIBackend, llamacpp: LlamaCppBackend, right: RightAnswer) -> None:
    greedy = SamplingParams(temperature=0.0, max_tokens=64)
    answer = backend.chat(right.question, greedy)
    assert answer.text.startswith(right.text)
    assert answer.usage.prompt_tokens == right.prompt_tokens
    exact = llamacpp.chat(right.question, greedy)  # the same engine in this process
    assert (answer.text, answer.finish_reason) == (exact.text, exact.finish_reason)
    assert answer.usage.completion_tokens == exact.usage.completion_tokens


def test_system_prompt_and_turns(backend: OpenAIBackend) -> None:
    chat = (
        ChatMessage.system("You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
        ChatMessage.user(SEVEN_TIMES_EIGHT),
        ChatMessage.assistant("It is 56."),
        ChatMessage.user(FRANCE),
    )
    assert backend.chat(chat, GREEDY).usage.prompt_tokens == 38 + 6 + 2 + 16


def test_logprobs(backend: OpenAIBackend, llamacpp: LlamaCppBackend) -> None:
    answer = backend.generate_sync(request(sampling=GREEDY.model_copy(update={"logprobs": 2})))
    exact = llamacpp.generate_sync(request(sampling=GREEDY.model_copy(update={"logprobs": 2})))
    assert answer.logprobs is not None
    assert exact.logprobs is not None
    assert [each.token_id for each in answer.logprobs] == list(exact.completion_token_ids or ())
    assert answer.logprobs[0].token == "L"
    assert [token for token, _ in answer.logprobs[0].top] == ["L", "The"]
    assert [value for _, value in answer.logprobs[0].top] == pytest.approx([-1.8529, -2.0096], abs=5e-4)


def test_stop(backend: OpenAIBackend) -> None:
    answer = backend.generate_sync(request(sampling=GREEDY.model_copy(update={"stop": ("la",)})))
    assert (answer.text, answer.finish_reason) == ("L'Étoile, ", FinishReason.STOP)


def test_seed(backend: OpenAIBackend) -> None:
    texts = [
        backend.generate_sync(request(SEA, SamplingParams(seed=s, max_tokens=12, temperature=1))).text
        for s in (7, 8, 7)
    ]
    # the server's own defaults: top_k 40, top_p 0.95, min_p 0.05
    assert texts[0].startswith("The sea's a mysterious and wondrous place")
    assert texts[1].startswith("The sea is a majestic, ethereal creature")
    assert texts[2] == texts[0]


def test_top_k_and_min_p_reach_the_server(backend: OpenAIBackend) -> None:
    hot = SamplingParams(temperature=2.0, seed=1, max_tokens=12)
    greedy = backend.generate_sync(request()).text
    assert backend.generate_sync(request(sampling=hot)).text != greedy
    assert backend.generate_sync(request(sampling=hot.model_copy(update={"top_k": 1}))).text == greedy
    assert backend.generate_sync(request(sampling=hot.model_copy(update={"min_p": 1.0}))).text == greedy


def test_n(backend: OpenAIBackend) -> None:
    sampling = SamplingParams(temperature=1.0, seed=7, max_tokens=8, logprobs=0)
    samples = asyncio.run(backend.sample(request(SEA, sampling), 4))
    assert len({sample.text for sample in samples}) > 1
    assert [sample.usage.prompt_tokens for sample in samples] == [37, 0, 0, 0]
    assert [sample.usage.completion_tokens for sample in samples] == [8] * 4
    with pytest.raises(BadRequest, match="between 1 <= value <= 4"):
        asyncio.run(backend.sample(request(), 5))


def test_json_schema(backend: OpenAIBackend) -> None:
    schema = {"type": "integer", "minimum": 3, "maximum": 5}
    assert backend.generate_sync(request("Give me a number.", json_schema=schema)).text in {"3", "4", "5"}


def test_extra_goes_to_the_server(backend: OpenAIBackend) -> None:
    banned = GREEDY.model_copy(update={"max_tokens": 1, "extra": {"logit_bias": [[60, False]]}})
    assert backend.generate_sync(request(sampling=banned)).text == "The"
    with pytest.raises(BadRequest, match="extra cannot hold 'stream'"):
        backend.generate_sync(request(sampling=SamplingParams(extra={"stream": True})))


def test_prompt_longer_than_the_context(backend: OpenAIBackend) -> None:
    with pytest.raises(ContextOverflow, match="exceeds the available context size"):
        backend.generate_sync(request("word " * 3000))


def test_a_parameter_that_is_wrong(backend: OpenAIBackend) -> None:
    with pytest.raises(BadRequest, match="top_k"):
        backend.generate_sync(request(sampling=SamplingParams(extra={"top_k": "many"})))


def test_a_wrong_key(llamacpp: LlamaCppBackend) -> None:
    for key in ("wrong", None):
        stranger = OpenAIBackend(llamacpp.model, base_url=llamacpp.base_url, api_key=key)
        with pytest.raises(AuthenticationFailed, match="refuses the key"):
            stranger.generate_sync(request())
        with pytest.raises(AuthenticationFailed):
            asyncio.run(stranger.check())


def test_check(backend: OpenAIBackend, llamacpp: LlamaCppBackend) -> None:
    asyncio.run(backend.check())
    other = OpenAIBackend("SmolLM2", base_url=llamacpp.base_url, api_key=llamacpp.api_key)
    with pytest.raises(ModelNotFound, match=rf"has no model 'SmolLM2'; it has {llamacpp.model}"):
        asyncio.run(other.check())
    dead = OpenAIBackend("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConnectionFailed, match=r"no server answers at http://127\.0\.0\.1:9/v1 \("):
        asyncio.run(dead.check())


def test_one_backend_over_several_loops(backend: OpenAIBackend) -> None:
    texts = [asyncio.run(backend.generate(request())).text for _ in range(3)]

    async def notebook() -> str:
        return backend.generate_sync(request()).text

    assert {*texts, asyncio.run(notebook())} == {backend.generate_sync(request()).text}


def test_many_at_once(backend: OpenAIBackend) -> None:
    short = SamplingParams(temperature=0.0, max_tokens=2)
    answers = backend.chat_batch([f"What is {i} plus 1?" for i in range(32)], short)
    assert len(answers) == 32
    assert answers[3].text == backend.chat("What is 3 plus 1?", short).text


def test_use_after_closing(llamacpp: LlamaCppBackend) -> None:
    backend = OpenAIBackend(llamacpp.model, base_url=llamacpp.base_url, api_key=llamacpp.api_key)
    first = backend.generate_sync(request()).text
    backend.close()
    backend.close()
    assert backend.generate_sync(request()).text == first
    backend.close()


def test_tools_and_their_results_reach_the_template() -> None:
    # the model's own template knows no tools
    template = (
        "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{{ m['content'] or '' }}{% for call in m['tool_calls'] or [] %}<tool_call>{{ call['function']['name'] }}"
        "{{ call['function']['arguments'] }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
        "<|im_start|>assistant\n"
    )
    add = ToolDefinition("add", "Add two integers", {"type": "object", "properties": {"a": {"type": "integer"}}})
    chat = (
        ChatMessage.user("Add 2 and 40 with the tool."),
        ChatMessage.assistant("", (ToolCall("add", {"a": 2, "b": 40}, "call_1"),)),
        ChatMessage("tool", "42", tool_call_id="call_1"),
    )
    one = SamplingParams(temperature=0.0, max_tokens=1)
    with LlamaCppBackend(n_ctx=1024, slots=1, chat_template=template) as server:
        backend = OpenAIBackend(server.model, base_url=server.base_url, api_key=server.api_key)
        without = backend.chat(chat, one).usage.prompt_tokens
        with_tools = backend.chat(chat, one, tools=(add,)).usage.prompt_tokens
        assert backend.chat(chat[:1], one).usage.prompt_tokens < without < with_tools
        assert with_tools - without == len(server.tokenize(f"<tools>{json.dumps([add.to_openai()])}</tools>"))
