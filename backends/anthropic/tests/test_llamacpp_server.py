"""Against a real server: llama.cpp's own Messages API on 127.0.0.1, with the default model."""

from __future__ import annotations

import asyncio

import pytest

from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.inference.errors import AuthenticationFailed, ConnectionFailed, ContextOverflow, ModelNotFound
from llenvs.testing.small_model import FRANCE, IN_LLAMACPP, PRIME, SEVEN_TIMES_EIGHT, RightAnswer
from llenvs_anthropic import AnthropicBackend
from llenvs_llamacpp import LlamaCppBackend

GREEDY = SamplingParams(temperature=0.0, max_tokens=64)


@pytest.mark.parametrize("right", IN_LLAMACPP, ids=lambda right: right.question)
def test_right_values(backend: AnthropicBackend, llamacpp: LlamaCppBackend, right: RightAnswer) -> None:
    answer = backend.chat(right.question, GREEDY)
    assert answer.text.startswith(right.text)
    assert answer.usage.prompt_tokens == right.prompt_tokens
    exact = llamacpp.chat(right.question, GREEDY)  # the same engine in this process
    assert (answer.text, answer.finish_reason) == (exact.text, exact.finish_reason)
    assert answer.usage.completion_tokens == exact.usage.completion_tokens


def test_prefix(backend: AnthropicBackend) -> None:
    assert backend.chat(FRANCE, GREEDY, prefix="The capital of").text == " France is Paris."


def test_stop(backend: AnthropicBackend) -> None:
    answer = backend.chat(FRANCE, SamplingParams(temperature=0.0, max_tokens=64, stop=("la",)))
    assert (answer.text, answer.finish_reason) == ("L'Étoile, ", FinishReason.STOP)
    assert answer.metadata["stop"] == "la"


def test_length_and_top_k(backend: AnthropicBackend) -> None:
    hot = SamplingParams(temperature=2.0, top_k=1, max_tokens=8)
    answer = backend.chat(FRANCE, hot)
    assert answer.finish_reason is FinishReason.LENGTH
    assert answer.text == backend.chat(FRANCE, SamplingParams(temperature=0.0, max_tokens=8)).text


def test_long_answers_are_streamed(backend: AnthropicBackend) -> None:
    # the SDK refuses to wait for so many tokens without streaming
    long = SamplingParams(temperature=0.0, max_tokens=30_000)
    answer = backend.chat(PRIME, long)
    assert (answer.text, answer.finish_reason) == ("No.", FinishReason.STOP)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (43, 3)


def test_system_and_turns(backend: AnthropicBackend) -> None:
    chat = (
        ChatMessage.system("You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
        ChatMessage.user(SEVEN_TIMES_EIGHT),
        ChatMessage.assistant("It is 56."),
        ChatMessage.user(FRANCE),
    )
    one = SamplingParams(temperature=0.0, max_tokens=1)
    assert backend.chat(chat, one).usage.prompt_tokens == 38 + 6 + 2 + 16


def test_tools_and_their_results_reach_the_template() -> None:
    add = ToolDefinition("add", "Add two integers", {"properties": {"a": {"type": "integer"}}})
    chat = (
        ChatMessage.user("Add 2 and 40, and 1 and 1."),
        ChatMessage.assistant("", (ToolCall("add", {"a": 2}, "call_1"), ToolCall("add", {"a": 1}, "call_2"))),
        ChatMessage("tool", "42", tool_call_id="call_1"),
        ChatMessage("tool", "2", tool_call_id="call_2"),
    )
    one = SamplingParams(temperature=0.0, max_tokens=1)
    with LlamaCppBackend(n_ctx=1024, slots=1, chat_template="chatml_tools") as server:
        backend = AnthropicBackend(
            server.model,
            base_url=server.base_url.removesuffix("/v1"),
            api_key=server.api_key,
            api_version="2023-06-01",
        )
        without = backend.chat(chat, one).usage.prompt_tokens
        with_tools = backend.chat(chat, one, tools=(add,)).usage.prompt_tokens
        assert backend.chat(chat[:1], one).usage.prompt_tokens < without < with_tools


def test_prompt_longer_than_the_context(backend: AnthropicBackend) -> None:
    with pytest.raises(ContextOverflow, match="exceeds the available context size"):
        backend.chat("word " * 3000, GREEDY)


def test_a_wrong_key(llamacpp: LlamaCppBackend) -> None:
    stranger = AnthropicBackend(
        llamacpp.model, base_url=llamacpp.base_url.removesuffix("/v1"), api_key="wrong", api_version="2023-06-01"
    )
    with pytest.raises(AuthenticationFailed, match="refuses the key"):
        stranger.chat("hi", GREEDY)
    with pytest.raises(AuthenticationFailed):
        asyncio.run(stranger.check())


def test_check(backend: AnthropicBackend, llamacpp: LlamaCppBackend) -> None:
    asyncio.run(backend.check())
    other = AnthropicBackend("SmolLM2", base_url=backend.base_url, api_key=llamacpp.api_key)
    with pytest.raises(ModelNotFound, match=rf"has no model 'SmolLM2'; it has {llamacpp.model}"):
        asyncio.run(other.check())
    with pytest.raises(ConnectionFailed, match=r"no server answers at http://127\.0\.0\.1:9 \("):
        asyncio.run(AnthropicBackend("m", base_url="http://127.0.0.1:9").check())


def test_one_backend_over_several_loops(backend: AnthropicBackend) -> None:
    request = GenerationRequest((ChatMessage.user(FRANCE),), SamplingParams(temperature=0.0, max_tokens=4))
    texts = [asyncio.run(backend.generate(request)).text for _ in range(3)]
    assert {*texts} == {backend.generate_sync(request).text}
    backend.close()
    assert backend.generate_sync(request).text == texts[0]


def test_n_samples_are_n_requests(backend: AnthropicBackend) -> None:
    hot = SamplingParams(temperature=1.0, max_tokens=8)
    samples = asyncio.run(backend.sample(GenerationRequest((ChatMessage.user("Write a word."),), hot), 4))
    assert len({sample.text for sample in samples}) > 1
    assert all(1 <= sample.usage.completion_tokens <= 8 for sample in samples)
    assert [sample.usage.prompt_tokens for sample in samples] == [samples[0].usage.prompt_tokens] * 4
