"""Greedy answers in float32, as transformers gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llenvs.core import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.testing.chat_engine import GREEDY, ChatEngineAnswers
from llenvs.testing.small_model import FRANCE, IN_FLOAT32
from llenvs_vllm import VLLMBackend

QUESTIONS = [right.question for right in IN_FLOAT32]
ADD = ToolDefinition(
    "add",
    "Add two integers",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


def request(text: str, sampling: SamplingParams = GREEDY, **fields: object) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


class TestAnswers(ChatEngineAnswers):
    """Those of the small model."""


def test_transformers_gives_the_same_texts_and_logprobs(backend: VLLMBackend, model_folder: Path) -> None:
    reason = "llenvs-transformers is not installed"
    backend_of = pytest.importorskip("llenvs_transformers", reason=reason).HuggingFaceBackend
    answers = backend.chat_batch(QUESTIONS, GREEDY)
    with backend_of(model_folder, device="cpu", dtype="float32", threads=1) as other:
        others = other.chat_batch(QUESTIONS, GREEDY)
        prompt = request(f"{FRANCE} <|im_end|>", prefix="The capital")
        assert backend.render(prompt) == other.render(prompt)
    for answer, right in zip(answers, others, strict=True):
        assert answer.text == right.text
        assert answer.prompt_token_ids == right.prompt_token_ids
        assert answer.completion_token_ids == right.completion_token_ids
        assert answer.finish_reason == right.finish_reason
        assert answer.logprobs is not None
        assert right.logprobs is not None
        for here, there in zip(answer.logprobs, right.logprobs, strict=True):
            assert here.token == there.token
            assert here.logprob == pytest.approx(there.logprob, abs=1e-4)
            assert dict(here.top) == pytest.approx(dict(there.top), abs=1e-4)


def test_a_grammar(backend: VLLMBackend) -> None:
    grammar = 'root ::= "<answer>" [0-9]{1,3} "</answer>"'
    answer = backend.generate_sync(request("How many legs do 3 cows have?", grammar=grammar))
    assert answer.text.startswith("<answer>")
    assert answer.text.endswith("</answer>")
    assert answer.text[8:-9].isdigit()
    assert answer.finish_reason is FinishReason.STOP


def test_a_json_schema(backend: VLLMBackend) -> None:
    import json

    schema = {
        "type": "object",
        "properties": {"legs": {"type": "integer"}, "sure": {"type": "boolean"}},
        "required": ["legs", "sure"],
        "additionalProperties": False,
    }
    answer = backend.generate_sync(request("How many legs do 3 cows have?", json_schema=schema))
    assert {name: type(value) for name, value in json.loads(answer.text).items()} == {"legs": int, "sure": bool}


@pytest.mark.parametrize("choice", ["required", "add"])
def test_forced_tool_calls(backend: VLLMBackend, choice: str) -> None:
    other = ToolDefinition("subtract", "Subtract", ADD.parameters)
    tools = (ADD,) if choice == "required" else (other, ADD)
    answer = backend.generate_sync(request("Add 2 and 40 with the tool.", tools=tools, tool_choice=choice))
    (call,) = answer.tool_calls
    assert call.name == "add"
    assert set(call.arguments) == {"a", "b"}
    assert not call.problem
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    if choice == "required":
        assert call == ToolCall("add", {"a": 2, "b": 40})
        result = ChatMessage("tool", "42", tool_call_id="1", name="add")
        chat = (ChatMessage.user("Add 2 and 40 with the tool."), answer.to_message(), result)
        rendered = backend.render(GenerationRequest(chat, tools=tools)).token_ids
        assert answer.prompt_token_ids is not None
        assert answer.completion_token_ids is not None
        so_far = answer.prompt_token_ids + answer.completion_token_ids
        # by text, since a grammar leads to ids that the tokenizer would not choose
        assert backend.detokenize(rendered).startswith(backend.detokenize(so_far))
