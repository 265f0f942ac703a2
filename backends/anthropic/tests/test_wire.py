"""What goes over the wire, and what is made of documented answers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, ImageContent, SamplingParams, Usage
from llenvs.inference.errors import BadRequest, UnsupportedFeature
from llenvs.testing.replay import ReplayServer, Reply
from llenvs_anthropic import AnthropicBackend

USER = (ChatMessage.user("hi"),)
ADD = ToolDefinition("add", "Add two integers", {"properties": {"a": {"type": "integer"}}})
ADD_ON_THE_WIRE = {
    "name": "add",
    "description": "Add two integers",
    "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
THINKING = {"type": "thinking", "thinking": "2 and 2 ...", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}


def backend(stub: ReplayServer, **options: Any) -> AnthropicBackend:
    return AnthropicBackend("claude-m", base_url=stub.url, api_key="secret", **options)


def test_a_bare_request(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message("hello")))
    answer = backend(stub).chat("hi")
    sent = stub.received[0]
    assert sent.path == "/v1/messages"
    assert sent.body == {"model": "claude-m", "max_tokens": 4096, "messages": [{"role": "user", "content": "hi"}]}
    assert sent.headers["authorization"] == "Bearer secret"
    assert sent.headers["anthropic-version"] == "2026-10-21"
    assert (answer.text, answer.model, answer.finish_reason) == ("hello", "claude-m", FinishReason.STOP)
    assert answer.usage == Usage(9, 3)
    assert answer.latency > 0


def test_every_parameter(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message("ok")))
    sampling = SamplingParams(
        max_tokens=5, stop=("a", "b"), reasoning_effort="low", extra={"service_tier": "standard_only"}
    )
    schema = {"type": "object", "properties": {}}
    made = backend(
        stub, headers={"X-Team": "rl"}, parallel_tool_calls=False, extra_body={"metadata": {"user_id": "u"}}
    )
    asyncio.run(made.generate(GenerationRequest(USER, sampling, (ADD,), "required", json_schema=schema)))
    assert stub.received[0].headers["x-team"] == "rl"
    assert stub.received[0].body == {
        "model": "claude-m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
        "stop_sequences": ["a", "b"],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
        "service_tier": "standard_only",
        "metadata": {"user_id": "u"},
        "tools": [ADD_ON_THE_WIRE],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    }


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("add", {"type": "tool", "name": "add"}),
    ],
)
def test_tool_choice(stub: ReplayServer, message: Any, choice: str | None, sent: Any) -> None:
    stub.answers(Reply(200, message("ok")))
    backend(stub).chat("hi", tools=(ADD,), tool_choice=choice)
    assert stub.received[0].body.get("tool_choice") == sent


@pytest.mark.parametrize(
    "sampling", [{"temperature": 1.0}, {"temperature": 0.0}, {"top_p": 0.9}, {"top_k": 3}], ids=str
)
def test_temperature_is_an_error_or_an_option(
    stub: ReplayServer, message: Any, sampling: dict[str, float]
) -> None:
    stub.answers(Reply(200, message("ok")))
    params = SamplingParams.model_validate(sampling)
    with pytest.raises(UnsupportedFeature, match=r"api_version='2023-06-01' sends it"):
        backend(stub).chat("hi", params)
    with pytest.raises(UnsupportedFeature):  # as a default of the backend too
        backend(stub, sampling=params).chat("hi")
    with pytest.raises(UnsupportedFeature):
        backend(stub, api_version="2026-10-21").chat("hi", params)
    assert stub.received == []
    backend(stub, api_version="2023-06-01").chat("hi", params)
    assert stub.received[0].headers["anthropic-version"] == "2023-06-01"
    for name, value in sampling.items():
        assert stub.received[0].body[name] == value


def test_what_the_api_lacks(stub: ReplayServer) -> None:
    for sampling in (SamplingParams(seed=1), SamplingParams(logprobs=0), SamplingParams(presence_penalty=1.0)):
        with pytest.raises(UnsupportedFeature):
            backend(stub).chat("hi", sampling)
    with pytest.raises(BadRequest, match="system messages must come first"):
        backend(stub).chat((*USER, ChatMessage.system("Be brief."), *USER))
    with pytest.raises(BadRequest, match="white space"):
        backend(stub).chat("hi", prefix="The ")
    with pytest.raises(BadRequest, match="no prefix together with thinking"):
        backend(stub, thinking={"type": "adaptive"}).chat("hi", prefix="The")
    with pytest.raises(BadRequest, match="extra cannot hold 'system'"):
        backend(stub).chat("hi", SamplingParams(extra={"system": "x"}))
    assert stub.received == []


def test_messages(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message("ok")))
    picture = ImageContent(data=b"abc", media_type="image/jpeg")
    chat = (
        ChatMessage.system("Be brief."),
        ChatMessage.system("Be kind."),
        ChatMessage.user("What are these?", (picture, ImageContent(url="https://x/y.png"))),
        ChatMessage.assistant("I add.", (ToolCall("add", {"a": 1}, "t1"), ToolCall("add", {"a": 2}, "t2"))),
        ChatMessage("tool", "1", tool_call_id="t1", name="add"),
        ChatMessage("tool", "no", (ImageContent(url="data:image/png;base64,YQ=="),), tool_call_id="t2"),
        ChatMessage.user("And now?"),
        ChatMessage.assistant(""),
        ChatMessage.user("Well?"),
    )
    backend(stub).chat(chat)
    body = stub.received[0].body
    assert body["system"] == "Be brief.\n\nBe kind."
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What are these?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "YWJj"}},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
                {"type": "tool_use", "id": "t2", "name": "add", "input": {"a": 2}},
            ],
        },
        {  # one user message for all results of a turn, and what the user says
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "1"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [
                        {"type": "text", "text": "no"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "YQ=="}},
                    ],
                },
                {"type": "text", "text": "And now?"},
            ],
        },
        {"role": "user", "content": "Well?"},
    ]


def test_thinking_goes_back_unchanged_in_a_tool_loop(stub: ReplayServer, message: Any) -> None:
    content = [THINKING, REDACTED, {"type": "text", "text": "I add."}, CALL]
    stub.answers(Reply(200, message(*content, stop_reason="tool_use")), Reply(200, message("2")))
    made = backend(stub, thinking={"type": "enabled", "budget_tokens": 1024})
    answer = made.chat("hi", tools=(ADD,))
    assert stub.received[0].body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert (answer.text, answer.reasoning) == ("I add.", "2 and 2 ...")
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    assert answer.tool_calls == (ToolCall("add", {"a": 1}, "toolu_1"),)
    turn = answer.to_message()
    result = ChatMessage("tool", "2", tool_call_id="toolu_1")
    made.chat((*USER, turn, result), tools=(ADD,))
    assert stub.received[1].body["messages"][1] == {"role": "assistant", "content": content}
    # somebody changed the text: signed blocks no longer belong to it
    edited = ChatMessage("assistant", "I guess.", tool_calls=turn.tool_calls, metadata=turn.metadata)
    made.chat((*USER, edited, result), tools=(ADD,))
    assert stub.received[2].body["messages"][1]["content"] == [{"type": "text", "text": "I guess."}, CALL]


@pytest.mark.parametrize(
    ("fields", "finish", "metadata"),
    [
        ({"stop_reason": "stop_sequence", "stop_sequence": "X"}, FinishReason.STOP, {"stop": "X"}),
        ({"stop_reason": "max_tokens"}, FinishReason.LENGTH, {}),
        ({"stop_reason": "model_context_window_exceeded"}, FinishReason.LENGTH, {"context_full": True}),
        (
            {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "cyber"}},
            FinishReason.CONTENT_FILTER,
            {"refusal": "cyber"},
        ),
        ({"stop_reason": "refusal"}, FinishReason.CONTENT_FILTER, {"refusal": "refusal"}),
        ({"stop_reason": "bored"}, FinishReason.UNKNOWN, {"finish_reason": "bored"}),
    ],
    ids=str,
)
def test_stop_reasons(
    stub: ReplayServer, message: Any, fields: dict[str, Any], finish: FinishReason, metadata: dict[str, Any]
) -> None:
    stub.answers(Reply(200, message("so far", **fields)))
    answer = backend(stub).chat("hi")
    assert (answer.text, answer.finish_reason) == ("so far", finish)
    assert dict(answer.metadata) == {"id": "msg_1", **metadata}


def test_a_call_that_was_cut_off_is_not_executed(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message(CALL, {**CALL, "id": "toolu_2", "input": {}}, stop_reason="max_tokens")))
    first, second = backend(stub).chat("hi", tools=(ADD,)).tool_calls
    assert (first.problem, dict(first.arguments)) == ("", {"a": 1})
    assert "cut off" in second.problem


def test_prompt_tokens_count_what_the_cache_holds(stub: ReplayServer, message: Any) -> None:
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 27,
        "cache_creation_input_tokens": 10,
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 40},
    }
    stub.answers(Reply(200, message("ok", usage=usage)))
    assert backend(stub).chat("hi").usage == Usage(38, 50, 27, 40)


def test_a_paused_turn_goes_on(stub: ReplayServer, message: Any) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    stub.answers(
        Reply(200, message("Let me look. ", search, stop_reason="pause_turn")), Reply(200, message("Found it."))
    )
    answer = backend(stub).chat("hi")
    assert answer.text == "Let me look. Found it."
    assert answer.usage == Usage(18, 6)
    assert stub.received[1].body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me look. "}, search]},
    ]


def events(*data: dict[str, Any]) -> Reply:
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in data)
    return Reply(200, text, {"Content-Type": "text/event-stream"})


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def test_a_streamed_answer_is_the_same_as_a_whole_one(stub: ReplayServer, message: Any) -> None:
    start = message(stop_reason=None, usage={"input_tokens": 9, "output_tokens": 1})
    stub.answers(
        events(
            {"type": "message_start", "message": start},
            *block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "2 and 2 "},
                {"type": "thinking_delta", "thinking": "..."},
                {"type": "signature_delta", "signature": "c2ln"},
            ),
            {"type": "ping"},
            *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I add."}),
            *block(
                2,
                {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"a"'},
                {"type": "input_json_delta", "partial_json": ": 1}"},
            ),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 33}},
            {"type": "message_stop"},
        ),
        Reply(200, message("2")),
    )
    made = backend(stub)
    answer = made.chat("hi", SamplingParams(max_tokens=21_334), tools=(ADD,))
    assert stub.received[0].body["stream"] is True
    assert (answer.text, answer.reasoning, answer.finish_reason) == (
        "I add.",
        "2 and 2 ...",
        FinishReason.TOOL_CALLS,
    )
    assert answer.tool_calls == (ToolCall("add", {"a": 1}, "toolu_1"),)
    assert answer.usage == Usage(9, 33)
    made.chat(
        (*USER, answer.to_message(), ChatMessage("tool", "2", tool_call_id="toolu_1")),
        SamplingParams(max_tokens=5),
    )
    assert stub.received[1].body["messages"][1]["content"] == [
        THINKING,
        {"type": "text", "text": "I add."},
        CALL,
    ]


def test_a_prefix_is_the_last_message(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message("The end")))
    assert backend(stub).chat("hi", prefix="The").text == " end"
    assert stub.received[0].body["messages"][-1] == {"role": "assistant", "content": "The"}
    assert backend(stub, echoes_prefix=False).chat("hi", prefix="The").text == "The end"


def test_options_are_checked() -> None:
    for options in ({"max_tokens": 0}, {"api_version": "new"}, {"base_url": "x"}, {"max_concurrency": 0}):
        with pytest.raises(InvalidOption):
            AnthropicBackend("m", **options)
    assert "secret" not in repr(AnthropicBackend("m", api_key="secret"))


def test_no_more_requests_at_once_than_allowed(stub: ReplayServer, message: Any) -> None:
    stub.answers(Reply(200, message("ok"), delay=0.05))
    made = backend(stub, max_concurrency=3)

    async def twelve() -> None:
        await asyncio.gather(*(made.achat("hi") for _ in range(12)))

    asyncio.run(twelve())
    assert (len(stub.received), stub.most_in_flight) == (12, 3)


def test_import_is_light() -> None:
    code = (
        "import sys, llenvs_anthropic; llenvs_anthropic.AnthropicBackend('m');"
        "print([m for m in ('anthropic', 'httpx', 'httpx2', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
