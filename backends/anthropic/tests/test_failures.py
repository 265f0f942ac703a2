"""Documented errors of the API, replayed over real sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from llenvs.inference import RetryPolicy, SamplingParams
from llenvs.inference import errors as failures
from llenvs.testing.replay import ReplayServer, Reply
from llenvs.testing.strange_answers import STRANGE, check_strange_answers
from llenvs_anthropic import AnthropicBackend

QUICK = RetryPolicy(attempts=3, min_wait=0.01, max_wait=0.02)
LONG = SamplingParams(max_tokens=30_000)  # streamed


def backend(stub: ReplayServer, **options: Any) -> AnthropicBackend:
    return AnthropicBackend("claude-m", **{"base_url": stub.url, "api_key": "k", "retry": QUICK, **options})


def error(kind: str, message: str = "says why") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


FINAL = [
    (401, error("authentication_error", "invalid x-api-key"), "AuthenticationFailed", "invalid x-api-key"),
    (403, error("permission_error"), "AuthenticationFailed", "says why"),
    (402, error("billing_error"), "QuotaExhausted", "says why"),
    (404, error("not_found_error", "model: claude-m"), "ModelNotFound", "knows no model 'claude-m'"),
    (404, "Not Found", "ModelNotFound", "nothing at http"),
    (
        400,
        error("invalid_request_error", "temperature: Extra inputs are not permitted"),
        "BadRequest",
        "Extra inputs",
    ),
    (
        400,
        error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "ContextOverflow",
        "210000",
    ),
    (
        400,
        error("invalid_request_error", "Your credit balance is too low to access the Anthropic API"),
        "QuotaExhausted",
        "credit balance",
    ),
    (413, error("request_too_large", "Request exceeds the maximum size"), "BadRequest", "too large"),
    (400, "no json at all", "BadRequest", "no json at all"),
]


@pytest.mark.parametrize(("status", "body", "kind", "says"), FINAL, ids=lambda value: str(value)[:30])
def test_errors_that_waiting_does_not_cure(
    stub: ReplayServer, status: int, body: Any, kind: str, says: str
) -> None:
    stub.answers(Reply(status, body))
    with pytest.raises(failures.BackendError) as caught:
        backend(stub).chat("hi")
    assert type(caught.value).__name__ == kind
    assert says in str(caught.value)
    assert str(caught.value).startswith("anthropic: ")
    assert len(stub.received) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_errors_that_pass_are_tried_again(stub: ReplayServer, message: Any, status: int) -> None:
    stub.answers(Reply(status, error("overloaded_error", "Overloaded")), Reply(200, message("at last")))
    assert backend(stub).chat("hi").text == "at last"
    assert len(stub.received) == 2


def test_the_last_error_is_raised(stub: ReplayServer) -> None:
    stub.answers(Reply(529, error("overloaded_error", "Overloaded")))
    with pytest.raises(failures.ProviderFailed, match="529: Overloaded"):
        backend(stub).chat("hi")
    assert len(stub.received) == 3  # the policy's attempts: the SDK's own retries are off


def test_retry_after(stub: ReplayServer, message: Any) -> None:
    limited = error("rate_limit_error", "slow down")
    stub.answers(Reply(429, limited, {"Retry-After": "1"}), Reply(200, message("ok")))
    backend(stub).chat("hi")
    assert stub.received[1].at - stub.received[0].at >= 1.0
    stub.received.clear()
    stub.answers(Reply(429, limited, {"Retry-After": "80000"}))
    with pytest.raises(failures.RateLimited) as caught:
        backend(stub).chat("hi")
    assert caught.value.retry_after == 80000
    assert len(stub.received) == 1


def test_timeout(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message("ok"), delay=1.0), Reply(200, message("quick")))
    assert backend(stub, timeout=0.3).chat("hi").text == "quick"
    stub.received.clear()
    stub.answers(Reply(200, message("ok"), delay=1.0))
    with pytest.raises(failures.BackendTimeout, match=r"no answer from http.* within timeout=0\.2 s"):
        backend(stub, timeout=0.2, retry={"attempts": 1}).chat("hi")


def test_dropped_connections(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(drop=True), Reply(200, message("whole"), drop=True), Reply(200, message("reconnected")))
    assert backend(stub).chat("hi").text == "reconnected"
    stub.answers(Reply(drop=True))
    with pytest.raises(failures.ConnectionFailed, match="no server answers at"):
        backend(stub).chat("hi")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ('{"id": "msg_1", "cont', {}),
        ("<html>gateway</html>", {"Content-Type": "text/html"}),
        ("<html>gateway</html>", {}),
        ("[]", {}),
        ("{}", {}),
        ('{"content": "text"}', {}),
        ("null", {}),
    ],
)
def test_an_answer_that_makes_no_sense(stub: ReplayServer, body: str, headers: dict[str, str]) -> None:
    stub.answers(Reply(200, body, headers))
    with pytest.raises(failures.ProviderFailed):
        backend(stub, retry={"attempts": 1}).chat("hi")
    with pytest.raises(failures.ProviderFailed):
        backend(stub, retry={"attempts": 1}).chat("hi", LONG)


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("overloaded_error", "ProviderFailed"),
        ("rate_limit_error", "RateLimited"),
        ("api_error", "ProviderFailed"),
        ("invalid_request_error", "BadRequest"),
    ],
)
def test_an_error_inside_a_stream(stub: ReplayServer, message: Any, kind: str, failure: str) -> None:
    start = json.dumps({"type": "message_start", "message": message()})
    text = f"event: message_start\ndata: {start}\n\nevent: error\ndata: {json.dumps(error(kind))}\n\n"
    stub.answers(Reply(200, text, {"Content-Type": "text/event-stream"}))
    with pytest.raises(failures.BackendError, match="says why") as caught:
        backend(stub, retry={"attempts": 1}).chat("hi", LONG)
    assert type(caught.value).__name__ == failure


def test_a_stream_that_breaks_off(stub: ReplayServer, message: Any) -> None:
    start = json.dumps({"type": "message_start", "message": message()})
    text = f"event: message_start\ndata: {start}\n\n" + "event: ping\ndata: {}\n\n" * 50
    stub.answers(Reply(200, text, {"Content-Type": "text/event-stream"}, drop=True))
    with pytest.raises(failures.ConnectionFailed):
        backend(stub, retry={"attempts": 1}).chat("hi", LONG)


def test_an_answer_that_never_ends(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message(), endless=True))
    with pytest.raises(failures.BackendTimeout, match=r"within timeout=0\.3 s"):
        backend(stub, timeout=0.3, retry={"attempts": 1}).chat("hi")


@pytest.mark.parametrize("strange", STRANGE, ids=repr)
def test_something_else_where_the_api_has_objects_texts_and_numbers(
    stub: ReplayServer, message: Any, strange: Any
) -> None:
    text, tool = {"type": "text", "text": "ok"}, {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    bodies = [
        strange,
        *(
            message(**{name: strange})
            for name in ("id", "model", "content", "stop_reason", "stop_sequence", "usage")
        ),
        *(message(usage={name: strange}) for name in ("input_tokens", "output_tokens", "cache_read_input_tokens")),
        *(message(content=[{**text, name: strange}]) for name in text),
        *(message(content=[{**tool, name: strange}]) for name in tool),
        message(stop_reason="refusal", stop_details=strange),
    ]
    check_strange_answers(backend(stub, retry={"attempts": 1}), stub, bodies)


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    for act in (lambda: AnthropicBackend("m").chat("hi"), lambda: asyncio.run(AnthropicBackend("m").check())):
        with pytest.raises(failures.AuthenticationFailed) as caught:
            act()
        assert str(caught.value) == (
            "anthropic: no API key; set the environment variable ANTHROPIC_API_KEY, or give api_key"
        )


def test_check(stub: ReplayServer) -> None:
    stub.answers(Reply(404, "Not Found"))
    asyncio.run(backend(stub).check())  # a server without a list of models
    assert (stub.received[0].method, stub.received[0].path) == ("GET", "/v1/models")
    stub.answers(Reply(401, error("authentication_error")))
    with pytest.raises(failures.AuthenticationFailed):
        asyncio.run(backend(stub).check())
