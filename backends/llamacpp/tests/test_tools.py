"""Tools: rendered into the prompt, forced by grammars, read from the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import ChatMessage, FinishReason, GenerationRequest, SamplingParams
from llenvs.inference.errors import BadRequest
from llenvs.inference.tool_calls import HermesToolCallParser, ParsedResponse
from llenvs.inference.tool_calls.catalog import UnknownToolCallParser
from llenvs.inference.tool_calls.grammar import GrammarImpossible
from llenvs_llamacpp import LlamaCppBackend

GREEDY = SamplingParams(temperature=0.0, max_tokens=64)
INTEGER = {"type": "integer"}
ADD = ToolDefinition(
    "add",
    "Add two integers",
    {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]},
)
SAY = ToolDefinition("say", "Say a word", {"properties": {"word": {"enum": ["yes", "no"]}}, "required": ["word"]})
QUESTION = "Add 2 and 40 with the tool."


def request(text: str = QUESTION, sampling: SamplingParams = GREEDY, **fields: object) -> GenerationRequest:
    fields = {"tools": (ADD,), **fields}
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def chatml(model_path: Path) -> Iterator[LlamaCppBackend]:
    """With the package's own template, which knows tools."""
    with LlamaCppBackend(model_path, n_ctx=1024, slots=2, chat_template="chatml_tools") as backend:
        yield backend


def test_the_right_values_with_the_templates_tools(chatml: LlamaCppBackend) -> None:
    # the same grammar by hand: small numbers, as when the values were taken down
    grammar = (
        'root ::= "<tool_call>\\n{\\"name\\": \\"add\\", \\"arguments\\": {\\"a\\": " [0-9]{1,9} ", \\"b\\": " '
        '[0-9]{1,9} "}}\\n</tool_call>"'
    )
    answer = chatml.generate_sync(request(grammar=grammar))
    assert answer.usage.prompt_tokens == 166
    assert answer.usage.completion_tokens == 37
    assert answer.completion_token_ids is not None
    assert answer.completion_token_ids[-2:] == (46, 2)
    assert answer.metadata["response_text"] == (
        '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 40}}\n</tool_call>'
    )
    assert answer.tool_calls == (ToolCall("add", {"a": 2, "b": 40}),)
    answer = chatml.generate_sync(request("What is 3 plus 4? Use add.", grammar=grammar))
    assert answer.tool_calls == (ToolCall("add", {"a": 3, "b": 4}),)
    assert answer.usage.completion_tokens == 36


@pytest.mark.parametrize("choice", ["required", "add"])
def test_a_demanded_call(chatml: LlamaCppBackend, choice: str) -> None:
    answer = chatml.generate_sync(request(tool_choice=choice))
    assert answer.tool_calls == (ToolCall("add", {"a": 2, "b": 40}),)
    assert (answer.text, answer.finish_reason) == ("", FinishReason.TOOL_CALLS)
    assert answer.usage.prompt_tokens == 166


def test_a_named_tool_among_several(chatml: LlamaCppBackend) -> None:
    answer = chatml.generate_sync(request("Is 17 a prime number?", tools=(ADD, SAY), tool_choice="say"))
    (call,) = answer.tool_calls
    assert call.name == "say"
    assert call.arguments["word"] in ("yes", "no")


def test_tools_for_a_template_that_knows_none(backend: LlamaCppBackend) -> None:
    prompt = backend.render(request()).text
    assert json.dumps(ADD.to_openai()) in prompt
    assert "<tool_call>" in prompt
    answer = backend.generate_sync(request(tool_choice="required"))
    assert [call.name for call in answer.tool_calls] == ["add"]
    assert set(answer.tool_calls[0].arguments) == {"a", "b"}
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    # nothing of it when the model is not to call
    plain = backend.render(request(tool_choice="none")).text
    assert plain == backend.render(request(tools=())).text


def test_a_turn_with_calls_and_results_continues_the_text(
    chatml: LlamaCppBackend, backend: LlamaCppBackend
) -> None:
    for engine in (chatml, backend):
        first = engine.generate_sync(request(tool_choice="required"))
        call = replace(first.tool_calls[0], id="call_1")
        turn = replace(first.to_message(), tool_calls=(call,))
        result = ChatMessage("tool", "42", tool_call_id="call_1", name="add")
        second = engine.render(GenerationRequest((ChatMessage.user(QUESTION), turn, result), GREEDY, (ADD,)))
        assert first.prompt_token_ids is not None
        assert first.completion_token_ids is not None
        so_far = first.prompt_token_ids + first.completion_token_ids
        # (the ids of a forced call need not be those that its text would be split into)
        assert second.token_ids[: len(first.prompt_token_ids)] == first.prompt_token_ids
        assert second.text.startswith(engine.detokenize(so_far))
        assert "<tool_response>\n42\n</tool_response>" in second.text


def test_several_demanded_calls(model_path: Path) -> None:
    with LlamaCppBackend(model_path, n_ctx=1024, slots=1, max_tool_calls=3) as backend:
        sampling = SamplingParams(temperature=1.0, seed=3, max_tokens=200)
        answer = backend.generate_sync(
            request("Say yes, then no.", sampling, tools=(SAY,), tool_choice="required")
        )
        assert 1 <= len(answer.tool_calls) <= 3
        assert all(call.arguments["word"] in ("yes", "no") for call in answer.tool_calls)


def test_a_call_that_is_no_call_is_part_of_the_trajectory(chatml: LlamaCppBackend) -> None:
    # cut off in the middle of the arguments
    cut = GREEDY.model_copy(update={"max_tokens": 20})
    answer = chatml.generate_sync(request(sampling=cut, tool_choice="required"))
    assert answer.finish_reason is FinishReason.LENGTH
    (call,) = answer.tool_calls
    assert call.problem.startswith("the tool call could not be read")
    assert call.name == "add"
    written = answer.metadata["response_text"]
    assert written.startswith('<tool_call>\n{"name": "add"')
    assert call.source in written
    # the next prompt holds what the model wrote, word for word
    messages = (ChatMessage.user(QUESTION), answer.to_message(), ChatMessage("tool", call.problem, name="add"))
    assert written in chatml.render(GenerationRequest(messages, GREEDY, (ADD,))).text


def test_text_without_a_call_stays_text(chatml: LlamaCppBackend) -> None:
    answer = chatml.generate_sync(request("Is 17 a prime number? Answer yes or no.", grammar='root ::= "No."'))
    assert (answer.text, answer.tool_calls, answer.finish_reason) == ("No.", (), FinishReason.STOP)


def test_a_stop_string_after_a_call(chatml: LlamaCppBackend) -> None:
    stopping = GREEDY.model_copy(update={"stop": ("\n</tool_call>",)})
    answer = chatml.generate_sync(request(sampling=stopping, tool_choice="required"))
    assert answer.tool_calls == (ToolCall("add", {"a": 2, "b": 40}),)


class FileSeparator(HermesToolCallParser):
    """Takes <file_sep>, a control token of this model, for a call."""

    name = "file_separator"

    def parse(self, text: str) -> ParsedResponse:
        found = "<file_sep>" in text
        return (
            ParsedResponse(text.replace("<file_sep>", ""), (ToolCall("found"),)) if found else ParsedResponse(text)
        )


def test_calls_that_are_marked_by_control_tokens(model_path: Path) -> None:
    with LlamaCppBackend(model_path, n_ctx=512, slots=1, tool_parser=FileSeparator()) as backend:
        (mark,) = (each for each in range(17) if backend.detokenize([each]) == "<file_sep>")
        forced = SamplingParams(temperature=0.0, max_tokens=1, extra={"logit_bias": [[mark, 1000.0]]})
        answer = backend.generate_sync(request(sampling=forced))
        assert answer.completion_token_ids == (mark,)
        assert (answer.text, answer.tool_calls) == ("", (ToolCall("found"),))
        assert answer.metadata["response_text"] == "<file_sep>"
        assert backend.generate_sync(request(sampling=forced, tools=())).text == ""


def test_what_cannot_be(chatml: LlamaCppBackend) -> None:
    with pytest.raises(BadRequest, match="'sub' is no tool of the request; valid: add"):
        chatml.generate_sync(request(tool_choice="sub"))
    with pytest.raises(BadRequest, match="excludes a grammar"):
        chatml.generate_sync(request(tool_choice="add", json_schema={"type": "integer"}))
    with pytest.raises(BadRequest, match="excludes a prefix"):
        chatml.generate_sync(request(tool_choice="add", prefix="So"))
    with pytest.raises(GrammarImpossible, match="unknown type"):
        chatml.generate_sync(
            request(
                tools=(replace(ADD, parameters={"properties": {"a": {"type": "foo"}}}),), tool_choice="required"
            )
        )
    with pytest.raises(UnknownToolCallParser, match="hermes"):
        LlamaCppBackend(tool_parser="hermès")
    with pytest.raises(InvalidOption, match="Jinja text, chatml_tools"):
        LlamaCppBackend(chat_template="chatml-tool")
    with pytest.raises(InvalidOption, match="max_tool_calls"):
        LlamaCppBackend(max_tool_calls=0)
