"""Documented errors of providers, replayed over real sockets."""

from __future__ import annotations

import asyncio
import email.utils
import time
from typing import Any

import pytest

from llenvs.inference import RetryPolicy, SamplingParams
from llenvs.inference import errors as failures
from llenvs.inference.http_failures import retry_after
from llenvs.testing.strange_answers import STRANGE, check_strange_answers
from llenvs_openai import OpenAIBackend

QUICK = RetryPolicy(attempts=3, min_wait=0.01, max_wait=0.02)


def backend(stub: Any, **options: Any) -> OpenAIBackend:
    return OpenAIBackend("m", **{"base_url": stub.base_url, "retry": QUICK, **options})


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


# answers as OpenAI, vLLM, llama.cpp and OpenRouter send them: (status, body, error of ours, what it says)
FINAL = [
    (401, error("Incorrect API key provided: sk-12**.", code="invalid_api_key"), "AuthenticationFailed", "sk-12"),
    (403, error("Project does not have access to model."), "AuthenticationFailed", "does not have access"),
    (404, error("The model `m` does not exist", code="model_not_found"), "ModelNotFound", "knows no model 'm'"),
    (404, "Not Found", "ModelNotFound", "nothing at http"),
    (402, error("Insufficient credits", code=402), "QuotaExhausted", "Insufficient credits"),
    (429, error("You exceeded your current quota", code="insufficient_quota"), "QuotaExhausted", "quota"),
    (
        400,
        error("Unsupported parameter: 'max_tokens'.", param="max_tokens", code="unsupported_parameter"),
        "BadRequest",
        "refuses the parameter 'max_tokens'",
    ),
    (
        400,
        error("Only the default (1) value is supported.", param="temperature", code="unsupported_value"),
        "BadRequest",
        "refuses the parameter 'temperature'",
    ),
    (400, error("This model's maximum context length is 8192 tokens."), "ContextOverflow", "8192"),
    (400, error("too long", code="context_length_exceeded"), "ContextOverflow", "too long"),
    (400, error("flagged", code="content_filter"), "ContentFiltered", "flagged"),
    (422, error("n must be positive"), "BadRequest", "n must be positive"),
    (400, "no json at all", "BadRequest", "no json at all"),
]


@pytest.mark.parametrize(("status", "body", "kind", "says"), FINAL, ids=lambda value: str(value)[:30])
def test_errors_that_waiting_does_not_cure(
    stub: Any, reply: Any, status: int, body: Any, kind: str, says: str
) -> None:
    stub.answers(reply(status, body))
    with pytest.raises(failures.BackendError) as caught:
        backend(stub).chat("hi")
    assert type(caught.value).__name__ == kind
    assert says in str(caught.value)
    assert str(caught.value).startswith("openai: ")
    assert len(stub.received) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_errors_that_pass_are_tried_again(stub: Any, reply: Any, answer: Any, status: int) -> None:
    stub.answers(reply(status, error("busy")), reply(200, answer("at last")))
    assert backend(stub).chat("hi").text == "at last"
    assert len(stub.received) == 2


def test_the_last_error_is_raised(stub: Any, reply: Any) -> None:
    stub.answers(reply(500, error("broken")))
    with pytest.raises(failures.ProviderFailed, match="500: broken"):
        backend(stub).chat("hi")
    assert len(stub.received) == 3  # the policy's attempts: the SDK's own retries are off


def test_retry_after_in_seconds_is_waited_for(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(429, error("slow down"), {"Retry-After": "1"}), reply(200, answer()))
    backend(stub).chat("hi")
    assert stub.received[1].at - stub.received[0].at >= 1.0


def test_retry_after_as_a_date_is_waited_for(stub: Any, reply: Any, answer: Any) -> None:
    date = email.utils.formatdate(time.time() + 2, usegmt=True)  # whole seconds
    stub.answers(reply(503, error("overloaded"), {"Retry-After": date}), reply(200, answer()))
    backend(stub).chat("hi")
    assert stub.received[1].at - stub.received[0].at >= 0.9


def test_a_long_retry_after_ends_it_at_once(stub: Any, reply: Any) -> None:
    stub.answers(reply(429, error("come back tomorrow"), {"Retry-After": "80000"}))
    with pytest.raises(failures.RateLimited) as caught:
        backend(stub).chat("hi")
    assert caught.value.retry_after == 80000
    assert len(stub.received) == 1


def test_a_server_that_says_not_to_retry(stub: Any, reply: Any) -> None:
    stub.answers(reply(500, error("deterministic"), {"x-should-retry": "false"}))
    with pytest.raises(failures.ProviderFailed):
        backend(stub).chat("hi")
    assert len(stub.received) == 1


def test_reading_retry_after() -> None:
    assert retry_after({}) is None
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    in_a_minute = retry_after({"retry-after": email.utils.formatdate(time.time() + 60, usegmt=True)})
    assert in_a_minute is not None
    assert 55 < in_a_minute <= 60


def test_timeout(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer(), delay=1.0), reply(200, answer("quick")))
    assert backend(stub, timeout=0.3).chat("hi").text == "quick"
    stub.answers(reply(200, answer(), delay=1.0))
    with pytest.raises(failures.BackendTimeout, match=r"no answer from http.* within timeout=0\.2 s"):
        backend(stub, timeout=0.2, retry={"attempts": 1}).chat("hi")


def test_a_dropped_connection(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(drop=True), reply(200, answer("reconnected")))
    assert backend(stub).chat("hi").text == "reconnected"
    stub.answers(reply(drop=True))
    with pytest.raises(failures.ConnectionFailed, match="no server answers at"):
        backend(stub).chat("hi")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ('{"id": "chatcmpl-1", "choi', {}),
        ("<html>gateway</html>", {"Content-Type": "text/html"}),
        ("<html>gateway</html>", {}),
        ("[]", {}),
        ("{}", {}),
        ('{"choices": []}', {}),
        ('{"choices": [{"index": 0, "message": null}]}', {}),
        ('{"choices": [{"index": 0}]}', {}),
        ('{"choices": "none"}', {}),
        ("null", {}),
    ],
)
def test_an_answer_that_makes_no_sense(stub: Any, reply: Any, body: str, headers: dict[str, str]) -> None:
    stub.answers(reply(200, body, headers))
    with pytest.raises(failures.ProviderFailed):
        backend(stub, retry={"attempts": 1}).chat("hi")


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        ({"code": 502, "message": "Provider returned error"}, "ProviderFailed"),
        ({"code": 429, "message": "rate limited upstream"}, "RateLimited"),
        ({"code": 402, "message": "no credits"}, "QuotaExhausted"),
        ({"code": 403, "message": "moderation"}, "AuthenticationFailed"),
        ("something", "ProviderFailed"),
    ],
)
def test_an_error_inside_a_200(stub: Any, reply: Any, answer: Any, inside: Any, kind: str) -> None:
    stub.answers(reply(200, {"error": inside}))
    with pytest.raises(failures.BackendError) as caught:
        backend(stub, retry={"attempts": 1}).chat("hi")
    assert type(caught.value).__name__ == kind
    # or inside the choice, beside the text so far
    stub.answers(reply(200, answer("par", choice={"finish_reason": "error", "error": inside})))
    with pytest.raises(failures.BackendError) as caught:
        backend(stub, retry={"attempts": 1}).chat("hi")
    assert type(caught.value).__name__ == kind


def test_what_was_asked_for_and_left_out(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer()))
    with pytest.raises(failures.UnsupportedFeature, match="logprobs"):
        backend(stub).chat("hi", SamplingParams(logprobs=1))
    with pytest.raises(failures.UnsupportedFeature, match="token ids"):
        backend(stub, return_token_ids=True).chat("hi")


def test_json_that_is_nested_without_end(stub: Any, reply: Any) -> None:
    stub.answers(reply(200, '{"choices": ' + "[" * 200_000))
    with pytest.raises(failures.ProviderFailed):
        backend(stub, retry={"attempts": 1}).chat("hi")


def test_an_answer_that_never_ends(stub: Any, reply: Any, answer: Any) -> None:
    stub.answers(reply(200, answer(), endless=True))
    with pytest.raises(failures.BackendTimeout, match=r"within timeout=0\.3 s"):
        backend(stub, timeout=0.3, retry={"attempts": 1}).chat("hi")


@pytest.mark.parametrize("strange", STRANGE, ids=repr)
def test_something_else_where_the_api_has_objects_texts_and_numbers(
    stub: Any, reply: Any, answer: Any, strange: Any
) -> None:
    def call(**fields: Any) -> dict[str, Any]:
        return {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}, **fields}]}

    bodies = [
        strange,
        *(answer(**{name: strange}) for name in ("id", "model", "choices", "usage", "error")),
        *(
            answer(choice={name: strange})
            for name in ("index", "message", "finish_reason", "logprobs", "token_ids")
        ),
        *(answer(message={name: strange}) for name in ("content", "tool_calls", "refusal", "reasoning")),
        *(answer(message=call(**{name: strange})) for name in ("id", "type", "function", "custom")),
        *(
            answer(usage={name: strange})
            for name in ("prompt_tokens", "completion_tokens", "prompt_tokens_details")
        ),
        answer(choice={"logprobs": {"content": strange}}),
        answer(choice={"logprobs": {"content": [{"token": strange, "logprob": -1.0, "top_logprobs": []}]}}),
        answer(choice={"logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": strange}]}}),
    ]
    check_strange_answers(backend(stub, retry={"attempts": 1}), stub, bodies)


def test_no_key_for_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for act in (lambda: OpenAIBackend("gpt-4o").chat("hi"), lambda: asyncio.run(OpenAIBackend("gpt-4o").check())):
        with pytest.raises(failures.AuthenticationFailed) as caught:
            act()
        assert str(caught.value) == (
            "openai: no API key; set the environment variable OPENAI_API_KEY, or give api_key"
        )


def test_check_with_a_server_that_lists_no_models(stub: Any, reply: Any) -> None:
    stub.answers(reply(404, "Not Found"))
    asyncio.run(backend(stub).check())
    assert stub.received[0].path == "/v1/models"
    stub.answers(reply(401, error("who are you")))
    with pytest.raises(failures.AuthenticationFailed):
        asyncio.run(backend(stub).check())
    stub.answers(reply(200, {"object": "list", "data": [{"id": "llama-3"}, {"id": "qwen-instruct"}]}))
    with pytest.raises(failures.ModelNotFound, match=r"has no model 'qwen_instrukt'; it has qwen-instruct$"):
        asyncio.run(OpenAIBackend("qwen_instrukt", base_url=stub.base_url).check())
