"""What goes over the wire, and what is made of documented answers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, ImageContent, SamplingParams, Usage
from llenvs.inference.backends import make_backend
from llenvs.inference.errors import UnsupportedFeature
from llenvs_openai import OpenAIBackend

USER = (ChatMessage.user("hi"),)
ADD = ToolDefinition("add", "Add two integers", {"type": "object", "properties": {"a": {"type": "integer"}}})


def test_a_bare_request_sends_nothing_more(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer()))
    OpenAIBackend("m", base_url=stub.base_url).chat("hi")
    assert stub.received[0].path == "/v1/chat/completions"
    assert stub.received[0].body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_every_parameter(stub: Any, reply: Any, answer: Any) -> None:
    logprobs = {"content": [{"token": "ok", "bytes": [111, 107], "logprob": -0.5, "top_logprobs": []}]}
    stub.answers(reply(200, answer(choice={"logprobs": logprobs})))
    sampling = SamplingParams(
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        top_k=3,
        min_p=0.1,
        seed=7,
        stop=("a", "b"),
        logprobs=2,
        presence_penalty=0.25,
        frequency_penalty=-0.25,
        reasoning_effort="low",
        extra={"service_tier": "flex", "user": "me"},
    )
    schema = {"type": "object", "properties": {}}
    backend = OpenAIBackend(
        "m",
        base_url=stub.base_url,
        api_key="secret",
        headers={"X-Team": "rl"},
        extra_body={"user": "default", "store": False},
    )
    request = GenerationRequest(USER, sampling, (ADD,), "add", json_schema=schema)
    asyncio.run(backend.generate(request))
    sent = stub.received[0]
    assert sent.headers["authorization"] == "Bearer secret"
    assert sent.headers["x-team"] == "rl"
    assert sent.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "min_p": 0.1,
        "seed": 7,
        "stop": ["a", "b"],
        "logprobs": True,
        "top_logprobs": 2,
        "presence_penalty": 0.25,
        "frequency_penalty": -0.25,
        "reasoning_effort": "low",
        "service_tier": "flex",
        "user": "me",
        "store": False,
        "tools": [
            {
                "type": "function",
                "function": {"name": "add", "description": "Add two integers", "parameters": dict(ADD.parameters)},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        },
    }


def test_the_field_for_the_most_tokens(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer()))
    OpenAIBackend("m", base_url=stub.base_url, max_tokens_field="max_completion_tokens").chat(
        "hi", SamplingParams(max_tokens=5)
    )
    assert stub.received[0].body["max_completion_tokens"] == 5
    assert "max_tokens" not in stub.received[0].body


def test_openais_own_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    backend = OpenAIBackend("gpt-4o", api_key="secret")
    assert backend.base_url == "https://api.openai.com/v1"
    body = backend._body(GenerationRequest(USER), SamplingParams(max_tokens=5, top_k=0), 3)
    assert body == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 5,
        "n": 3,
    }
    for sampling in (SamplingParams(top_k=40), SamplingParams(min_p=0.1), SamplingParams(stop=tuple("abcde"))):
        with pytest.raises(UnsupportedFeature):  # before anything is sent
            backend.chat("hi", sampling)
    assert "secret" not in repr(backend)


def test_the_environment_names_server_and_key(
    stub: Any, reply: Any, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.answers(reply(200, answer()))
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    OpenAIBackend("m").chat("hi")
    assert stub.received[0].headers["authorization"] == "Bearer from-the-environment"


def test_messages(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer()))
    chat = (
        ChatMessage.system("Be brief."),
        ChatMessage.user(
            "What is this?", (ImageContent(data=b"abc"), ImageContent(url="https://x/y.png", detail="low"))
        ),
        ChatMessage.assistant("", (ToolCall("add", {"a": 1}, "call_1"),)),
        ChatMessage("tool", "1", tool_call_id="call_1", name="add"),
    )
    OpenAIBackend("m", base_url=stub.base_url).chat(chat)
    assert stub.received[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}},
                {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "content": "1", "tool_call_id": "call_1"},
    ]


def test_tool_calls_valid_and_not(stub: Any, reply: Any, answer: Any) -> None:
    def call(identity: str, arguments: Any) -> dict[str, Any]:
        return {"id": identity, "type": "function", "function": {"name": "add", "arguments": arguments}}

    broken = '{"a": 1, "b": '
    calls = [call("c1", '{"a": 1}'), call("c2", broken), call("c3", "[1]"), call("c4", ""), call("c5", {"a": 2})]
    message = {"content": None, "tool_calls": calls}
    stub.answers(reply(200, answer(message=message, choice={"finish_reason": "tool_calls"})))
    backend = OpenAIBackend("m", base_url=stub.base_url)
    generation = backend.chat("hi", tools=(ADD,))
    assert generation.finish_reason is FinishReason.TOOL_CALLS
    assert generation.text == ""
    assert [(each.id, dict(each.arguments), each.source) for each in generation.tool_calls] == [
        ("c1", {"a": 1}, ""),
        ("c2", {}, broken),
        ("c3", {}, "[1]"),
        ("c4", {}, ""),
        ("c5", {"a": 2}, ""),
    ]
    assert "ends too early" in generation.tool_calls[1].problem
    assert "not a JSON object" in generation.tool_calls[2].problem
    # what the model wrote goes back to it unchanged
    results = tuple(ChatMessage("tool", "?", tool_call_id=f"c{i}") for i in range(1, 6))
    backend.chat((*USER, generation.to_message(), *results))
    sent = stub.received[1].body["messages"][1]["tool_calls"]
    assert [each["function"]["arguments"] for each in sent] == ['{"a": 1}', broken, "[1]", "{}", '{"a": 2}']


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_tool_choice(stub: Any, reply: Any, answer: Any, choice: str | None, sent: Any) -> None:
    stub.answers(reply(200, answer()))
    backend = OpenAIBackend("m", base_url=stub.base_url, parallel_tool_calls=False)
    backend.chat("hi", tools=(ADD,), tool_choice=choice)
    assert stub.received[0].body.get("tool_choice") == sent
    assert stub.received[0].body["parallel_tool_calls"] is False
    backend.chat("hi")  # without tools the API refuses both
    assert stub.received[1].body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_custom_tools(stub: Any, reply: Any, answer: Any) -> None:
    run = ToolDefinition("run", "Runs Python", {"type": "object", "properties": {"code": {"type": "string"}}})
    format = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[0-9+]+"}}
    calls = [
        {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "1+1"}},
        {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    ]
    message = {"content": None, "tool_calls": calls}
    stub.answers(reply(200, answer(message=message, choice={"finish_reason": "tool_calls"})), reply(200, answer()))
    backend = OpenAIBackend("m", base_url=stub.base_url, custom_tools={"run": format})
    first = backend.chat("hi", tools=(run, ADD), tool_choice="run")
    assert stub.received[0].body["tools"] == [
        {"type": "custom", "custom": {"name": "run", "description": "Runs Python", "format": format}},
        ADD.to_openai(),
    ]
    assert stub.received[0].body["tool_choice"] == {"type": "custom", "custom": {"name": "run"}}
    assert first.tool_calls == (ToolCall("run", {"code": "1+1"}, "c1"), ToolCall("add", {"a": 1}, "c2"))
    results = tuple(ChatMessage("tool", "2", tool_call_id=each) for each in ("c1", "c2"))
    backend.chat((*USER, first.to_message(), *results), tools=(run, ADD))
    assert stub.received[1].body["messages"][1]["tool_calls"] == calls
    with pytest.raises(InvalidOption, match="exactly one argument"):
        OpenAIBackend("m", base_url=stub.base_url, custom_tools=["add"]).chat("hi", tools=(ADD,))


def test_cost_is_taken_where_a_server_tells_it(stub: Any, reply: Any, answer: Any) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.5}
    stub.answers(reply(200, answer(usage=usage)), reply(200, answer()))
    backend = OpenAIBackend("m", base_url=stub.base_url)
    assert [backend.chat("hi").usage for _ in range(2)] == [Usage(9, 3, cost=0.5), Usage(9, 3)]


def test_reasoning_usage_and_refusal(stub: Any, reply: Any, answer: Any) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    stub.answers(
        reply(200, answer("four", message={"reasoning_content": "2 + 2"}, usage=usage)),
        reply(200, answer(message={"content": None, "refusal": "I can't."}, usage=None)),
        reply(200, answer(choice={"finish_reason": "content_filter"})),
        reply(200, answer(choice={"finish_reason": "eos"})),
    )
    backend = OpenAIBackend("m", base_url=stub.base_url)
    first, second, third, fourth = (backend.chat("hi") for _ in range(4))
    assert (first.text, first.reasoning, first.model) == ("four", "2 + 2", "m-2026")
    assert first.usage == Usage(100, 50, 64, 40)
    assert (second.text, second.finish_reason) == ("", FinishReason.CONTENT_FILTER)
    assert second.metadata["refusal"] == "I can't."
    assert second.usage == Usage()
    assert third.finish_reason is FinishReason.CONTENT_FILTER
    assert fourth.finish_reason is FinishReason.UNKNOWN
    assert fourth.metadata["finish_reason"] == "eos"


def test_several_choices(stub: Any, reply: Any, answer: Any) -> None:
    body = answer("0")
    body["choices"] = [
        {**body["choices"][0], "index": i, "message": {"role": "assistant", "content": str(i)}} for i in (2, 0, 1)
    ]
    body["usage"] = {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17}
    stub.answers(reply(200, body))
    samples = asyncio.run(OpenAIBackend("m", base_url=stub.base_url).sample(GenerationRequest(USER), 3))
    assert stub.received[0].body["n"] == 3
    assert [sample.text for sample in samples] == ["0", "1", "2"]
    assert [sample.usage.completion_tokens for sample in samples] == [3, 3, 2]
    assert sum(sample.usage.prompt_tokens for sample in samples) == 9


def test_token_ids_of_a_vllm_server(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer(choice={"token_ids": [5, 6, 2]}, prompt_token_ids=[1, 2, 3])))
    backend = OpenAIBackend("m", base_url=stub.base_url, return_token_ids=True)
    generation = backend.chat("hi")
    assert stub.received[0].body["return_token_ids"] is True
    assert generation.prompt_token_ids == (1, 2, 3)
    assert generation.completion_token_ids == (5, 6, 2)
    assert backend.capabilities.token_ids


def test_no_more_requests_at_once_than_allowed(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer(), delay=0.05))
    backend = OpenAIBackend("m", base_url=stub.base_url, max_concurrency=5)

    async def thirty() -> None:
        await asyncio.gather(*(backend.achat("hi") for _ in range(30)))

    asyncio.run(thirty())
    assert len(stub.received) == 30
    assert stub.most_in_flight == 5


def test_cancelling_gives_the_turn_back(stub: Any, reply: Any, answer: Any) -> None:
    stub.script = lambda number, request: reply(200, answer(), delay=5.0 if number == 0 else 0.0)
    backend = OpenAIBackend("m", base_url=stub.base_url, max_concurrency=1)

    async def cancel() -> str:
        first = asyncio.create_task(backend.achat("hi"))
        while not stub.received:
            await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return (await backend.achat("hi")).text

    assert asyncio.run(cancel()) == "ok"


def test_features_of_another_server_can_be_named(stub: Any) -> None:
    backend = OpenAIBackend("m", base_url=stub.base_url, capabilities={"logprobs": False, "native_n": False})
    with pytest.raises(UnsupportedFeature, match="logprobs"):
        backend.chat("hi", SamplingParams(logprobs=0))
    assert stub.received == []
    with pytest.raises(InvalidOption, match="unknown capability"):
        OpenAIBackend("m", capabilities={"telepathy": True})


def test_n_as_single_requests_with_consecutive_seeds(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer()))
    backend = OpenAIBackend("m", base_url=stub.base_url, capabilities={"native_n": False})
    asyncio.run(backend.sample(GenerationRequest(USER, SamplingParams(seed=7)), 3))
    assert sorted(each.body["seed"] for each in stub.received) == [7, 8, 9]


def test_options_are_checked() -> None:
    with pytest.raises(InvalidOption, match="must begin with http"):
        OpenAIBackend("m", base_url="localhost:8000")
    with pytest.raises(InvalidOption, match="max_concurrency"):
        OpenAIBackend("m", max_concurrency=0)
    with pytest.raises(InvalidOption, match="base_url: must be a URL"):
        OpenAIBackend("m", base_url=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="timeout: must be a positive number"):
        OpenAIBackend("m", timeout=-3)
    with pytest.raises(InvalidOption, match=r"headers\.X-Number: must be a text"):
        OpenAIBackend("m", headers={"X-Number": 5})  # type: ignore[dict-item]
    with pytest.raises(InvalidOption, match="not iterable") as caught:
        make_backend("openai", model="m", api_key="sk-secret", custom_tools=5)
    assert "sk-secret" not in str(caught.value)
    with pytest.raises(InvalidOption, match="retry: must be a mapping"):
        OpenAIBackend("m", retry="often")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="max_completion_tokens, max_tokens"):
        OpenAIBackend("m", max_tokens_field="tokens")  # type: ignore[arg-type]
    with pytest.raises(UnknownOption, match="'base_url'"):
        make_backend("openai", model="m", baseurl="http://x")
    with pytest.raises(InvalidOption, match=r"model\.model"):
        make_backend("openai")


def test_import_is_light() -> None:
    code = (
        "import sys, llenvs_openai; llenvs_openai.OpenAIBackend('m');"
        "print([m for m in ('openai', 'httpx', 'httpx2', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
