"""Greedy answers in float32, as transformers' own ``generate`` gives them and as vLLM does."""

from __future__ import annotations

from pathlib import Path

import pytest

from llenvs.core import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.inference.local.model_file import locate_model
from llenvs.testing.chat_engine import GREEDY, ChatEngineAnswers
from llenvs.testing.small_model import FRANCE
from llenvs_transformers import HuggingFaceBackend


def request(text: str, sampling: SamplingParams = GREEDY, **fields: object) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


class TestAnswers(ChatEngineAnswers):
    """Those of the small model."""


def test_the_text_of_a_control_token_stays_text(backend: HuggingFaceBackend) -> None:
    rendered = backend.render(request("hi <|im_end|> there"))
    plain = backend.render(request("hi"))
    assert rendered.token_ids.count(2) == plain.token_ids.count(2)
    assert "hi <|im_end|> there" in rendered.text
    ids = " ".join(map(str, rendered.token_ids))
    assert "6004 2067 108 306 79 486 108 46 665" in ids


def test_answers_are_the_same_with_a_gguf_file(backend: HuggingFaceBackend) -> None:
    with HuggingFaceBackend(locate_model(None, "transformers"), device="cpu") as from_gguf:
        assert from_gguf.model == "SmolLM2-135M-Instruct.Q4_1"
        answer = from_gguf.chat(FRANCE, GREEDY)
        folder = backend.chat(FRANCE, GREEDY)
        assert answer.completion_token_ids == folder.completion_token_ids
        assert answer.prompt_token_ids == folder.prompt_token_ids
        assert answer.logprobs is not None
        # the folder's weights are rounded to bfloat16
        assert answer.logprobs[0].logprob == pytest.approx(-1.8827, abs=1e-4)


ADD = ToolDefinition(
    "add",
    "Add two integers",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 40}}\n</tool_call>'


def test_tools_by_a_template_that_knows_them(model_folder: Path) -> None:
    template = Path(__file__).with_name("chatml_tools.jinja").read_text(encoding="utf-8")
    with HuggingFaceBackend(model_folder, device="cpu", threads=1, chat_template=template) as backend:
        ask = request("Add 2 and 40 with the tool.", tools=(ADD,), prefix=CALL[:-8])
        prompt = backend.render(request("Add 2 and 40 with the tool.", tools=(ADD,)))
        assert len(prompt.token_ids) == 166
        assert "You may call the functions listed between <tools> and </tools>." in prompt.text
        answer = backend.generate_sync(ask)
        assert answer.tool_calls == (ToolCall("add", {"a": 2, "b": 40}),)
        assert answer.finish_reason is FinishReason.TOOL_CALLS
        # the next turn continues the same ids: what the model wrote goes back as it was
        result = ChatMessage("tool", "42", tool_call_id="1", name="add")
        chat = (*ask.messages, answer.to_message(), result)
        rendered = backend.render(GenerationRequest(chat, tools=(ADD,)))
        assert answer.prompt_token_ids is not None
        assert answer.completion_token_ids is not None
        so_far = answer.prompt_token_ids + answer.completion_token_ids
        assert backend.detokenize(rendered.token_ids).startswith(backend.detokenize(so_far))
        assert "<tool_response>\n42\n</tool_response>" in rendered.text
        # and a call that somebody else made is written by the template
        made = ChatMessage.assistant("", (ToolCall("add", {"a": 1, "b": 2}),))
        other = backend.render(GenerationRequest((*ask.messages, made, result), tools=(ADD,)))
        assert '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>' in other.text


def test_tools_by_a_template_that_knows_none(backend: HuggingFaceBackend) -> None:
    ask = request("Add 2 and 40 with the tool.", tools=(ADD,), prefix=CALL[:-8])
    prompt = backend.render(ask).text
    assert prompt.startswith("<|im_start|>system\n")
    assert '"name": "add"' in prompt
    answer = backend.generate_sync(ask)
    assert answer.tool_calls[0] == ToolCall("add", {"a": 2, "b": 40})
    none = backend.render(request("Add 2 and 40 with the tool.", tools=(ADD,), tool_choice="none")).text
    assert "add" not in none
