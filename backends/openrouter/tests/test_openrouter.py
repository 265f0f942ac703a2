"""What goes over the wire to OpenRouter, and what is made of its documented answers and errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from typing import Any

import pytest

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, RetryPolicy, SamplingParams, Usage
from llenvs.inference import errors as failures
from llenvs.testing.replay import ReplayServer, Reply
from llenvs_llamacpp import LlamaCppBackend
from llenvs_openrouter import OpenRouterBackend

PINNED = {"only": ["deepinfra"]}
USER = (ChatMessage.user("hi"),)
QUICK = RetryPolicy(attempts=2, min_wait=0.01, max_wait=0.02)


def backend(stub: ReplayServer, **options: Any) -> OpenRouterBackend:
    defaults: dict[str, Any] = {
        "base_url": stub.url + "/api/v1",
        "provider": PINNED,
        "api_key": "k",
        "retry": QUICK,
    }
    return OpenRouterBackend("maker/model", **{**defaults, **options})


def test_what_is_sent(stub: ReplayServer, answer: Any) -> None:
    stub.answers(Reply(200, answer()))
    made = backend(
        stub,
        provider={"order": ["deepinfra"], "allow_fallbacks": False, "quantizations": ["bf16"]},
        fallback_models=["maker/other"],
        reasoning={"max_tokens": 500, "exclude": True},
        site_url="https://example.org",
        title="LLEnvs",
    )
    made.chat("hi", SamplingParams(max_tokens=5, top_k=3, min_p=0.1, seed=7, reasoning_effort="low"))
    sent = stub.received[0]
    assert sent.path == "/api/v1/chat/completions"
    assert sent.headers["authorization"] == "Bearer k"
    assert sent.headers["http-referer"] == "https://example.org"
    assert sent.headers["x-openrouter-title"] == "LLEnvs"
    assert sent.body == {
        "model": "maker/model",
        "models": ["maker/model", "maker/other"],
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 5,
        "top_k": 3,
        "min_p": 0.1,
        "seed": 7,
        "reasoning": {"exclude": True, "effort": "low"},
        "provider": {
            "require_parameters": True,
            "order": ["deepinfra"],
            "allow_fallbacks": False,
            "quantizations": ["bf16"],
        },
    }


def test_parameters_are_required_unless_said_otherwise(stub: ReplayServer, answer: Any) -> None:
    stub.answers(Reply(200, answer()))
    backend(stub).chat("hi")
    backend(stub, provider={**PINNED, "require_parameters": False}).chat("hi")
    assert [each.body["provider"] for each in stub.received] == [
        {"require_parameters": True, "only": ["deepinfra"]},
        {"require_parameters": False, "only": ["deepinfra"]},
    ]


@pytest.mark.parametrize(
    ("provider", "warns"),
    [
        (None, True),
        ({"order": ["a"]}, True),
        ({"only": ["a", "b"]}, True),
        ({"only": ["a"]}, False),
        ({"order": ["a"], "allow_fallbacks": False}, False),
    ],
    ids=str,
)
def test_a_warning_when_no_provider_is_pinned(provider: Any, warns: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OpenRouterBackend("maker/model", provider=provider)
    assert [("pins one" in str(each.message)) for each in caught] == ([True] if warns else [])


def test_who_answered_and_what_it_cost(stub: ReplayServer, answer: Any) -> None:
    stub.answers(Reply(200, answer("four", message={"reasoning": "2 + 2"})))
    made = backend(stub).chat("hi")
    assert (made.text, made.reasoning, made.model) == ("four", "2 + 2", "maker/model-2026")
    assert made.usage == Usage(9, 3, cost=0.00014)
    assert made.metadata["provider"] == "DeepInfra"
    assert made.metadata["native_finish_reason"] == "end_turn"


def test_reasoning_details_go_back_unchanged(stub: ReplayServer, answer: Any) -> None:
    details = [
        {"type": "reasoning.text", "text": "2 + 2", "signature": "c2ln", "format": "x-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "r1", "format": "x-v1", "index": 1},
    ]
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    message = {"content": None, "tool_calls": [call], "reasoning_details": details}
    stub.answers(Reply(200, answer(message=message, choice={"finish_reason": "tool_calls"})), Reply(200, answer()))
    made = backend(stub)
    add = ToolDefinition("add", "", {"properties": {"a": {"type": "integer"}}})
    first = made.chat("hi", tools=(add,))
    assert first.finish_reason is FinishReason.TOOL_CALLS
    assert first.tool_calls == (ToolCall("add", {"a": 1}, "c1"),)
    made.chat((*USER, first.to_message(), ChatMessage("tool", "1", tool_call_id="c1")), tools=(add,))
    assert stub.received[1].body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_details": details},
        {"role": "tool", "content": "1", "tool_call_id": "c1"},
    ]


def test_n_samples_are_n_requests_with_consecutive_seeds(stub: ReplayServer, answer: Any) -> None:
    stub.answers(Reply(200, answer()))
    asyncio.run(backend(stub).sample(GenerationRequest(USER, SamplingParams(seed=7)), 3))
    assert sorted(each.body["seed"] for each in stub.received) == [7, 8, 9]


@pytest.mark.parametrize(
    ("code", "kind", "requests"),
    [
        (400, "BadRequest", 1),
        (401, "AuthenticationFailed", 1),
        (402, "QuotaExhausted", 1),
        (403, "ContentFiltered", 1),
        (404, "ModelNotFound", 1),
        (408, "BackendTimeout", 2),
        (429, "RateLimited", 2),
        (500, "ProviderFailed", 2),
        (502, "ProviderFailed", 2),
        (503, "ProviderFailed", 2),
    ],
)
@pytest.mark.parametrize("place", ["status", "body", "choice"])
def test_errors_as_status_inside_a_200_or_inside_a_choice(
    stub: ReplayServer, answer: Any, code: int, kind: str, requests: int, place: str
) -> None:
    error = {"code": code, "message": "Provider returned error", "metadata": {"raw": "upstream says why"}}
    stub.answers(
        {
            "status": Reply(code, {"error": error}),
            "body": Reply(200, {"error": error}),
            "choice": Reply(200, answer("par", choice={"finish_reason": "error", "error": error})),
        }[place]
    )
    with pytest.raises(failures.BackendError, match="Provider returned error") as caught:
        backend(stub).chat("hi")
    assert type(caught.value).__name__ == kind
    assert len(stub.received) == requests
    if place != "status":
        assert "upstream says why" in str(caught.value)


def test_no_choices_at_all_is_tried_again(stub: ReplayServer, answer: Any) -> None:
    stub.answers(Reply(200, {**answer(), "choices": []}), Reply(200, answer("at last")))
    assert backend(stub).chat("hi").text == "at last"


def test_options_are_checked(stub: ReplayServer) -> None:
    with pytest.raises(UnknownOption, match="did you mean 'require_parameters'"):
        backend(stub, provider={"require_paramters": True})
    with pytest.raises(InvalidOption, match="must be a mapping"):
        backend(stub, provider="deepinfra")


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.delenv("OPENROUTER_BASE_URL", raising=False)
    with pytest.raises(failures.AuthenticationFailed) as caught:
        OpenRouterBackend("maker/model", provider=PINNED).chat("hi")
    assert str(caught.value) == (
        "openrouter: no API key; set the environment variable OPENROUTER_API_KEY, or give api_key"
    )


def test_check(stub: ReplayServer) -> None:
    models = {"object": "list", "data": [{"id": "maker/model"}, {"id": "maker/other:free"}]}
    stub.script = lambda number, request: Reply(200, models if request.path.endswith("/models") else {"data": {}})
    asyncio.run(backend(stub).check())
    assert [each.path for each in stub.received] == ["/api/v1/key", "/api/v1/models"]
    asyncio.run(backend(stub, fallback_models=["maker/model:nitro", "maker/other:free"]).check())
    with pytest.raises(failures.ModelNotFound, match="no model 'maker/modal'; there are maker/model"):
        asyncio.run(backend(stub, fallback_models=["maker/modal"]).check())
    stub.answers(Reply(401, {"error": {"code": 401, "message": "User not found."}}))
    with pytest.raises(failures.AuthenticationFailed):
        asyncio.run(backend(stub).check())


def test_a_real_model_behind_it() -> None:
    """llama.cpp's server ignores routing, and answers as any server of this API."""
    with LlamaCppBackend(n_ctx=1024, slots=1) as server:
        made = OpenRouterBackend(server.model, base_url=server.base_url, api_key=server.api_key, provider=PINNED)
        answer = made.chat(
            "Is 17 a prime number? Answer yes or no.", SamplingParams(temperature=0.0, max_tokens=8)
        )
        assert (answer.text, answer.finish_reason) == ("No.", FinishReason.STOP)
        assert answer.usage.prompt_tokens == 43


def test_import_is_light() -> None:
    code = (
        "import sys, llenvs_openrouter; llenvs_openrouter.OpenRouterBackend('m', provider={'only': ['a']});"
        "print([m for m in ('openai', 'httpx', 'httpx2', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("options", [{"fallback_models": "qwen/qwen3-32b"}, {"reasoning": "high"}])
def test_options_of_another_kind(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        OpenRouterBackend("m", provider={"only": ["p"]}, **options)
