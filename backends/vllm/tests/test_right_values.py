"""Greedy answers in float32, as transformers gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llenvs.core import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs_vllm import VLLMBackend

GREEDY = SamplingParams(temperature=0.0, max_tokens=48, logprobs=2)
FRANCE = "What is the capital of France?"
RIGHT = [
    (FRANCE, 37, "The capital of France is Paris.", (504, 3575, 282, 4649, 314, 7042, 30, 2), -1.8643),
    (
        "How many legs do 3 cows and 2 chickens have in total?",
        45,
        "There are 3 legs for the first 3 cows and 2 legs for the second one.",
        (2122, 359, 216),
        -1.7059,
    ),
    ("Write one sentence about the sea.", 37, "The sea is a vast and mysterious realm, teeming", (504,), -0.2723),
    ("What is 7 times 8?", 38, "To find 7 times 8, we can use the formula for multiplication", (2068,), -0.9404),
    (
        "Is 17 a prime number? Answer yes or no.",
        43,
        "No, 17 is not a prime number. A prime number",
        (5230, 28),
        -1.3039,
    ),
    ("Translate 'good morning' to French.", 39, "Je m'aime la vie, je m'aime la vie.", (46719,), -1.7272),
]
QUESTIONS = [question for question, *_ in RIGHT]
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


def test_texts_ids_and_logprobs(backend: VLLMBackend) -> None:
    answers = backend.chat_batch(QUESTIONS, GREEDY)
    for (_, prompt_tokens, text, ids, logprob), answer in zip(RIGHT, answers, strict=True):
        assert answer.completion_token_ids is not None
        assert answer.logprobs is not None
        assert answer.usage.prompt_tokens == prompt_tokens
        assert answer.text.startswith(text)
        assert answer.completion_token_ids[: len(ids)] == ids
        assert answer.logprobs[0].logprob == pytest.approx(logprob, abs=1e-4)
        assert backend.detokenize(answer.completion_token_ids).removesuffix("<|im_end|>") == answer.text
        assert [each.token_id for each in answer.logprobs] == list(answer.completion_token_ids)
        assert "".join(each.token for each in answer.logprobs).removesuffix("<|im_end|>") == answer.text
    first = answers[0]
    assert first.logprobs is not None
    assert first.finish_reason is FinishReason.STOP
    assert [token for token, _ in first.logprobs[0].top] == ["The", "L"]
    assert answers[3].finish_reason is FinishReason.LENGTH


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


def test_a_prefix_is_continued(backend: VLLMBackend) -> None:
    answer = backend.generate_sync(request(FRANCE, prefix="The capital of"))
    assert answer.text == " France is Paris."
    assert answer.completion_token_ids == (4649, 314, 7042, 30, 2)


def test_a_stop_string_cuts_the_text_and_keeps_the_ids(backend: VLLMBackend) -> None:
    sampling = SamplingParams(temperature=0.0, stop=("is Par",), logprobs=0, max_tokens=30)
    answer = backend.chat(FRANCE, sampling)
    assert answer.text == "The capital of France "
    assert answer.metadata["stop"] == "is Par"
    assert answer.finish_reason is FinishReason.STOP
    assert answer.completion_token_ids == (504, 3575, 282, 4649, 314, 7042)
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 6


def test_two_turns_by_ids_equal_the_rendered_conversation(backend: VLLMBackend) -> None:
    first = backend.chat(FRANCE, GREEDY)
    chat = (ChatMessage.user(FRANCE), first.to_message(), ChatMessage.user("And of Spain?"))
    second = backend.generate_sync(GenerationRequest(chat, GREEDY))
    assert first.prompt_token_ids is not None
    assert first.completion_token_ids is not None
    assert second.prompt_token_ids is not None
    so_far = first.prompt_token_ids + first.completion_token_ids
    assert second.prompt_token_ids[: len(so_far)] == so_far
    assert backend.detokenize(second.prompt_token_ids[len(so_far) :]) == (
        "\n<|im_start|>user\nAnd of Spain?<|im_end|>\n<|im_start|>assistant\n"
    )


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
