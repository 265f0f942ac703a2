"""Greedy answers in float32, as transformers' own ``generate`` gives them and as vLLM does."""

from __future__ import annotations

from pathlib import Path

import pytest

from llenvs.core import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.inference.local.model_file import locate_model
from llenvs_transformers import HuggingFaceBackend

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


def request(text: str, sampling: SamplingParams = GREEDY, **fields: object) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


def test_texts_ids_and_logprobs(backend: HuggingFaceBackend) -> None:
    answers = backend.chat_batch([question for question, *_ in RIGHT], GREEDY)
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
        assert answer.usage.completion_tokens == len(answer.completion_token_ids)
    first = answers[0]
    assert first.logprobs is not None
    assert first.finish_reason is FinishReason.STOP
    assert [token for token, _ in first.logprobs[0].top] == ["The", "L"]
    assert answers[3].finish_reason is FinishReason.LENGTH


def test_a_prefix_is_continued(backend: HuggingFaceBackend) -> None:
    answer = backend.generate_sync(request(FRANCE, prefix="The capital of"))
    assert answer.text == " France is Paris."
    assert answer.completion_token_ids == (4649, 314, 7042, 30, 2)
    assert answer.prompt_token_ids is not None
    assert answer.prompt_token_ids[-3:] == (504, 3575, 282)


def test_a_stop_string_cuts_the_text_and_keeps_the_ids(backend: HuggingFaceBackend) -> None:
    sampling = SamplingParams(temperature=0.0, stop=("Paris", "is Par"), logprobs=0, max_tokens=30)
    answer = backend.chat(FRANCE, sampling)
    assert answer.text == "The capital of France "
    assert answer.metadata["stop"] == "is Par"
    assert answer.finish_reason is FinishReason.STOP
    assert answer.completion_token_ids == (504, 3575, 282, 4649, 314, 7042)
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 6


def test_two_turns_by_ids_equal_the_rendered_conversation(backend: HuggingFaceBackend) -> None:
    first = backend.chat(FRANCE, GREEDY)
    chat = (ChatMessage.user(FRANCE), first.to_message(), ChatMessage.user("And of Spain?"))
    rendered = backend.render(GenerationRequest(chat)).token_ids
    assert first.prompt_token_ids is not None
    assert first.completion_token_ids is not None
    so_far = first.prompt_token_ids + first.completion_token_ids
    assert rendered[: len(so_far)] == so_far
    # the end of the turn, the user's turn, the start of the assistant's
    assert backend.detokenize(rendered[len(so_far) :]) == (
        "\n<|im_start|>user\nAnd of Spain?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert backend.generate_sync(GenerationRequest(chat, GREEDY)).prompt_token_ids == rendered


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
