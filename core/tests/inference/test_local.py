"""What local engines share: the form of templates, control tokens kept apart, stop strings."""

from __future__ import annotations

import re

import pytest

from llenvs.core import FinishReason, Generation, ToolCall
from llenvs.inference import ChatMessage, HermesToolCallParser, ImageContent
from llenvs.inference.errors import BadRequest
from llenvs.inference.local.chat_template import KeptApart, template_message
from llenvs.inference.local.stop_strings import cut_at_stop
from llenvs.inference.tool_calls.reading import with_tool_calls

CONTROL = re.compile(re.escape("<|end|>"))


@pytest.mark.parametrize(
    ("text", "stops", "cut"),
    [
        ("one two", (), ("one two", None)),
        ("one two", ("three",), ("one two", None)),
        ("one two", ("two", "e t"), ("on", "e t")),
        ("a\n\nb", ("\n", "\n\n"), ("a", "\n\n")),  # the longer of two at one place
        ("two two", ("two",), ("", "two")),
        ("text", ("",), ("text", None)),
    ],
)
def test_stop_strings(text: str, stops: tuple[str, ...], cut: tuple[str, str | None]) -> None:
    assert cut_at_stop(text, stops) == cut


def test_messages_for_templates() -> None:
    call = ToolCall("add", {"a": 1, "b": "ü"}, "c1")
    message = ChatMessage.assistant("Let me see", (call,))
    assert template_message(message)["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": "ü"}'}}
    ]
    (as_mapping,) = template_message(message, "mapping")["tool_calls"]
    assert as_mapping["function"]["arguments"] == {"a": 1, "b": "ü"}
    assert template_message(ChatMessage("tool", "3", tool_call_id="c1", name="add")) == {
        "role": "tool",
        "content": "3",
        "tool_call_id": "c1",
        "name": "add",
    }
    seeing = ChatMessage.user("What?", (ImageContent(data=b"x"), ImageContent(data=b"y")))
    assert template_message(seeing)["content"] == [
        {"type": "text", "text": "What?"},
        {"type": "image"},
        {"type": "image"},
    ]


def test_control_tokens_are_kept_apart() -> None:
    chat = [
        {"role": "user", "content": "a <|end|> b"},
        {"role": "user", "content": [{"type": "text", "text": "<|end|>"}, {"type": "image"}]},
        {"role": "user", "content": "plain"},
    ]
    apart = KeptApart.of(chat, CONTROL)
    first = apart.messages[0]["content"]
    second = apart.messages[1]["content"][0]["text"]
    assert "<|end|>" not in str(apart.messages)
    assert apart.messages[2]["content"] == "plain"
    rendered = f"<|user|>{first}<|end|><|user|>{second}<|end|>"
    assert apart.pieces(rendered, "test") == [
        ("<|user|>", True),
        ("a <|end|> b", False),
        ("<|end|><|user|>", True),
        ("<|end|>", False),
        ("<|end|>", True),
    ]
    with pytest.raises(BadRequest, match="parse_special"):
        apart.pieces(first.upper(), "test")
    trusted = KeptApart.of(chat, None)
    assert trusted.messages == chat
    assert trusted.pieces("x <|end|>", "test") == [("x <|end|>", True)]


def test_calls_in_a_generation() -> None:
    written = 'So: <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    generation = Generation(text=written, completion_token_ids=(1, 2))
    read = with_tool_calls(generation, HermesToolCallParser())
    assert (read.text, read.tool_calls) == ("So:", (ToolCall("add", {"a": 1}),))
    assert read.finish_reason is FinishReason.TOOL_CALLS
    assert read.completion_token_ids == (1, 2)
    # a call that the prefix began; a text without control tokens
    rest = Generation(text=written[20:], finish_reason=FinishReason.LENGTH)
    cut_off = with_tool_calls(rest, HermesToolCallParser(), prefix=written[:20])
    assert cut_off.tool_calls == read.tool_calls
    assert cut_off.finish_reason is FinishReason.LENGTH
    assert with_tool_calls(Generation(text="no call"), HermesToolCallParser()) == Generation(text="no call")
    special = with_tool_calls(Generation(text="So:"), HermesToolCallParser(), written=written)
    assert special.tool_calls == read.tool_calls
