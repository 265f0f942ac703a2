"""Tools for a backend without any: what it is sent, what comes back, and grammars that force a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llenvs.core.generation import FinishReason, Generation
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import (
    Capabilities,
    ChatMessage,
    GenerationRequest,
    HermesToolCallParser,
    PromptedToolsBackend,
    SamplingParams,
    ScriptedBackend,
)
from llenvs.inference.errors import BadRequest, UnsupportedFeature
from llenvs.inference.tool_calls import Llama3PythonicToolCallParser, call_grammar, make_parser, render_chat
from llenvs.inference.tool_calls.grammar import GrammarImpossible
from llenvs.inference.tool_calls.rendering import RESPONSE_TEXT

ADD = ToolDefinition(
    "add",
    "Add two integers",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
HERMES = HermesToolCallParser()
CALL = ToolCall("add", {"a": 2, "b": 40}, "call_1_0")
CALLED = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 40}}\n</tool_call>'


class Bare(ScriptedBackend):
    """A backend without tools that remembers what it was asked."""

    capabilities = Capabilities(grammar=True, prefix=True, seed=True)

    def __init__(self, *answers: str | Generation) -> None:
        self.requests: list[GenerationRequest] = []
        waiting = iter(answers)

        def answer(request: GenerationRequest) -> str | Generation:
            self.requests.append(request)
            return next(waiting)

        super().__init__(answer)


def rows(messages: Any) -> list[tuple[str, str]]:
    return [(m.role, m.content) for m in messages]


def test_a_chat_with_tools_becomes_plain_text() -> None:
    chat = (
        ChatMessage.system("Be brief."),
        ChatMessage.user("Add 2 and 40."),
        ChatMessage.assistant("I call add.", (CALL, ToolCall("add", {"a": 1, "b": 1}, "call_1_1"))),
        ChatMessage("tool", "42", tool_call_id="call_1_0", name="add"),
        ChatMessage("tool", "2", tool_call_id="call_1_1", name="add"),
        ChatMessage.user("And now?"),
        ChatMessage.assistant("Done."),
    )
    plain = render_chat(chat, [ADD], HERMES)
    assert rows(plain) == [
        (
            "system",
            "Be brief.\n\nYou may call the functions listed between <tools> and </tools>.\n<tools>\n"
            '{"type": "function", "function": {"name": "add", "description": "Add two integers", "parameters": '
            '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, '
            '"required": ["a", "b"]}}}\n</tools>\nTo call one, answer with its name and arguments as JSON:\n'
            '<tool_call>\n{"name": <function-name>, "arguments": <arguments-object>}\n</tool_call>',
        ),
        ("user", "Add 2 and 40."),
        (
            "assistant",
            f"I call add.\n{CALLED}\n"
            '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 1}}\n</tool_call>',
        ),
        (
            "user",
            "<tool_response>\n42\n</tool_response>\n<tool_response>\n2\n</tool_response>\n\nAnd now?",
        ),
        ("assistant", "Done."),
    ]
    assert all(not m.tool_calls and m.tool_call_id is None for m in plain)


@pytest.mark.parametrize("parser", ["hermes", "llama3_json", "llama3_pythonic", "mistral"])
def test_every_form_describes_tools_and_results(parser: str) -> None:
    chat = (
        ChatMessage.user("Add."),
        ChatMessage.assistant("", (CALL,)),
        ChatMessage("tool", "42", tool_call_id="call_1_0", name="add"),
    )
    made = make_parser(parser)
    system, user, assistant, results = render_chat(chat, [ADD], made)
    assert (system.role, user.content, results.role) == ("system", "Add.", "user")
    assert json.dumps(ADD.to_openai()) in system.content
    assert "42" in results.content
    (again,) = made.parse(assistant.content).calls
    assert (again.name, again.arguments) == (CALL.name, CALL.arguments)


def test_what_the_model_wrote_is_repeated_word_for_word() -> None:
    written = 'Well:<tool_call>{"name":"add","arguments":{"a":2,"b":40}}</tool_call>'
    parsed = HERMES.parse(written)
    calls = (ToolCall("add", {"a": 2, "b": 40}, "call_1_0"),)
    message = ChatMessage("assistant", parsed.text, tool_calls=calls, metadata={RESPONSE_TEXT: written})
    chat = (ChatMessage.user("Add."), message, ChatMessage("tool", "42", tool_call_id="call_1_0"))
    assert render_chat(chat, [], HERMES)[1].content == written
    edited = ChatMessage("assistant", "Changed.", tool_calls=calls, metadata={RESPONSE_TEXT: written})
    assert render_chat((chat[0], edited, chat[2]), [], HERMES)[1].content == f"Changed.\n{CALLED}"


def test_a_conversation_through_the_backend() -> None:
    inner = Bare(f"I add.\n{CALLED}", "It is 42.")
    backend = PromptedToolsBackend(inner)
    assert backend.capabilities.tools
    first = backend.chat("Add 2 and 40.", SamplingParams(seed=3), tools=(ADD,))
    assert (first.text, first.finish_reason) == ("I add.", FinishReason.TOOL_CALLS)
    assert [(c.name, c.arguments) for c in first.tool_calls] == [("add", {"a": 2, "b": 40})]
    message = ChatMessage("assistant", first.text, tool_calls=(CALL,), metadata=first.metadata)
    chat = [
        ChatMessage.user("Add 2 and 40."),
        message,
        ChatMessage("tool", "42", tool_call_id="call_1_0", name="add"),
    ]
    second = backend.chat(chat, tools=(ADD,))
    assert (second.text, second.tool_calls, second.finish_reason) == ("It is 42.", (), FinishReason.STOP)
    sent = inner.requests[1]
    assert (sent.tools, sent.tool_choice, sent.grammar) == ((), None, None)
    assert [m.role for m in sent.messages] == ["system", "user", "assistant", "user"]
    assert sent.messages[:2] == inner.requests[0].messages
    assert sent.messages[2].content == f"I add.\n{CALLED}"


def test_a_broken_call_comes_back_with_its_problem() -> None:
    cut = Generation('<tool_call>\n{"name": "add", "argum', finish_reason=FinishReason.LENGTH)
    generation = PromptedToolsBackend(Bare(cut)).chat("Add.", tools=(ADD,))
    (call,) = generation.tool_calls
    assert call.name == "add"
    assert "ends too early" in call.problem
    assert generation.finish_reason is FinishReason.LENGTH


def test_without_tools_nothing_is_changed() -> None:
    inner = Bare(CALLED, CALLED)
    backend = PromptedToolsBackend(inner)
    assert backend.chat("Say it.").text == CALLED
    assert backend.chat("Say it.", tools=(ADD,), tool_choice="none").text == CALLED
    assert [rows(r.messages) for r in inner.requests] == [[("user", "Say it.")]] * 2


def test_a_prefix_is_part_of_what_is_parsed() -> None:
    inner = Bare('{"name": "add", "arguments": {"a": 2, "b": 40}}\n</tool_call>')
    generation = PromptedToolsBackend(inner).chat("Add.", tools=(ADD,), prefix="<tool_call>\n")
    assert [(c.name, c.arguments) for c in generation.tool_calls] == [("add", {"a": 2, "b": 40})]
    assert inner.requests[0].prefix == "<tool_call>\n"


def test_a_forced_call_needs_a_grammar() -> None:
    inner = Bare(CALLED, CALLED)
    backend = PromptedToolsBackend(inner, tool_choice="required")
    backend.chat("Add.", tools=(ADD,))
    assert inner.requests[0].grammar == call_grammar([ADD], HERMES)
    other = ToolDefinition("other")
    backend.chat("Add.", tools=(ADD, other), tool_choice="add")
    assert inner.requests[1].grammar == call_grammar([ADD], HERMES)
    with pytest.raises(BadRequest, match="'nothing' is no tool of the request; valid: add"):
        backend.chat("Add.", tools=(ADD,), tool_choice="nothing")
    with pytest.raises(BadRequest, match="excludes a grammar"):
        backend.chat("Add.", tools=(ADD,), grammar='root ::= "x"')
    with pytest.raises(UnsupportedFeature, match="takes no grammar"):
        PromptedToolsBackend(ScriptedBackend(), tool_choice="required")
    with pytest.raises(UnsupportedFeature, match="takes no grammar"):
        PromptedToolsBackend(ScriptedBackend()).chat("Add.", tools=(ADD,), tool_choice="add")


# -- grammars -----------------------------------------------------------------------------------------------------


def test_the_grammar_of_one_call() -> None:
    assert call_grammar([ADD], HERMES) == (
        'root ::= "<tool_call>\\n" call "\\n</tool_call>"\n'
        'integer ::= "-"? natural\n'
        'natural ::= "0" | [1-9] [0-9]{0,15}\n'
        'tool0 ::= "{" "\\"a\\": " integer ", " "\\"b\\": " integer "}"\n'
        'call ::= "{\\"name\\": \\"add\\", \\"arguments\\": " tool0 "}"\n'
    )


def rule(schema: dict[str, Any]) -> str:
    """The rule of the arguments of a tool with this schema."""
    lines = call_grammar([ToolDefinition("t", "", schema)], make_parser("llama3_json")).splitlines()
    return next(line for line in lines if line.startswith("tool0 ::= ")).removeprefix("tool0 ::= ")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, '"{}"'),
        (
            {"properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}, "required": ["b"]},
            '"{" "\\"b\\": " null (", " "\\"a\\": " boolean)? "}"',
        ),
        (
            {"properties": {"a": {"const": 1}, "b": {"enum": ["x", None]}}},
            '"{" ("\\"a\\": " "1" (", " "\\"b\\": " ("\\"x\\"" | "null"))?'
            ' | "\\"b\\": " ("\\"x\\"" | "null"))? "}"',
        ),
        (
            {"properties": {"a": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}}},
            '"{" ("\\"a\\": " "[" number (", " number){1,2} "]")? "}"',
        ),
        (
            {
                "properties": {"a": {"anyOf": [{"type": "string"}, {"type": ["integer", "null"]}]}},
                "required": ["a"],
            },
            '"{" "\\"a\\": " (string | (integer | null)) "}"',
        ),
        (
            {"properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]},
            '"{" "\\"a\\": " "\\"" char{0,9} "\\"" "}"',
        ),
        (
            {"properties": {"a": {"type": "string", "pattern": "^[0-9+*/ -]{1,60}$"}}, "required": ["a"]},
            '"{" "\\"a\\": " "\\"" [0-9+*/ -]{1,60} "\\"" "}"',
        ),
        (
            {"additionalProperties": {"type": "integer"}},
            '"{" (string ": " integer (", " string ": " integer)*)? "}"',
        ),
        ({"required": ["a"]}, '"{" "\\"a\\": " value "}"'),
    ],
)
def test_rules_of_schemas(schema: dict[str, Any], expected: str) -> None:
    assert rule(schema) == expected


def test_a_schema_may_refer_to_itself() -> None:
    tree = {
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "required": ["root"],
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "required": ["children"],
            }
        },
    }
    grammar = call_grammar([ToolDefinition("t", "", tree)], HERMES)
    assert 'tool0-Node-0 ::= "{" "\\"children\\": " "[" (tool0-Node-0 (", " tool0-Node-0){0,})? "]" "}"' in grammar


def test_what_no_grammar_can_say_names_the_place() -> None:
    missing = ToolDefinition("t", "", {"properties": {"a": {"$ref": "#/$defs/No"}}})
    with pytest.raises(GrammarImpossible, match=r"tool 't': parameters\.a refers to '#/\$defs/No'"):
        call_grammar([missing], HERMES)
    both = ToolDefinition("t", "", {"properties": {"a": {"allOf": [{}, {}]}}})
    with pytest.raises(GrammarImpossible, match=r"parameters\.a combines several"):
        call_grammar([both], HERMES)
    with pytest.raises(GrammarImpossible, match="cannot be forced"):
        call_grammar([ADD], Llama3PythonicToolCallParser())
    with pytest.raises(GrammarImpossible, match="at least one tool"):
        call_grammar([], HERMES)
