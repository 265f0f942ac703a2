"""Tool-call parsers: right values, and properties over any calls and any text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llenvs.core.tools import ToolCall
from llenvs.inference.tool_calls import (
    PARSERS,
    HermesToolCallParser,
    Llama3JsonToolCallParser,
    Llama3PythonicToolCallParser,
    MistralToolCallParser,
    ToolCallParser,
    make_parser,
)
from llenvs.inference.tool_calls.catalog import UnknownToolCallParser

HERMES = HermesToolCallParser()
LLAMA = Llama3JsonToolCallParser()
PYTHONIC = Llama3PythonicToolCallParser()
MISTRAL = MistralToolCallParser()
ALL = [HERMES, LLAMA, PYTHONIC, MISTRAL]

EXAMPLES: list[tuple[ToolCallParser, str, str, list[tuple[str, Any]]]] = [
    # parser, response, text left over, calls
    (HERMES, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', "", [("f", {"a": 1})]),
    (HERMES, 'I add. <tool_call>{"name": "f", "arguments": {}}</tool_call>Done.', "I add. Done.", [("f", {})]),
    (
        HERMES,
        '<tool_call>{"name": "f"}</tool_call>\n<tool_call>{"name": "g"}</tool_call>',
        "",
        [("f", {}), ("g", {})],
    ),
    (HERMES, '<tool_call>\n{"name": "f"}\n{"name": "g"}\n</tool_call>', "", [("f", {}), ("g", {})]),
    (HERMES, '<tool_call>[{"name": "f"}, {"name": "g"}]</tool_call>', "", [("f", {}), ("g", {})]),
    (HERMES, '```json\n<tool_call>\n{"name": "f"}\n</tool_call>\n```', "", [("f", {})]),
    (HERMES, '<tool_call>\n```json\n{"name": "f"}\n```\n</tool_call>', "", [("f", {})]),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": "</tool_call>"}}', "", [("f", {"a": "</tool_call>"})]),
    (HERMES, '<tool_call>{"name": "f"} <tool_call>{"name": "g"}', "", [("f", {}), ("g", {})]),
    (HERMES, '<tool_call>{"name": "f"} is my call</tool_call> ok', "ok", [("f", {})]),
    (HERMES, '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>', "", [("f", {"a": 1})]),
    (HERMES, '<tool_call>{"name": "f", "parameters": {"a": null}}</tool_call>', "", [("f", {"a": None})]),
    (
        HERMES,
        '<tool_call>{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}</tool_call>',
        "",
        [("f", {"a": 1})],
    ),
    (
        HERMES,
        '<think>or <tool_call>{"name": "g"}</tool_call>?</think><tool_call>{"name": "f"}</tool_call>',
        '<think>or <tool_call>{"name": "g"}</tool_call>?</think>',
        [("f", {})],
    ),
    (HERMES, "no call at all ", "no call at all ", []),
    (
        HERMES,
        '<think>so far <tool_call>{"name": "f"}</tool_call>',
        '<think>so far <tool_call>{"name": "f"}</tool_call>',
        [],
    ),
    (LLAMA, '{"name": "f", "parameters": {"a": 1}}', "", [("f", {"a": 1})]),
    (
        LLAMA,
        '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}',
        "",
        [("f", {}), ("g", {})],
    ),
    (LLAMA, 'Sure:\n```json\n{"name": "f", "parameters": {"a": 1}}\n```', "Sure:", [("f", {"a": 1})]),
    (LLAMA, '{"name": "f", "arguments": {}} and more', "and more", [("f", {})]),
    (LLAMA, '{"name": "Ada", "age": 36}', '{"name": "Ada", "age": 36}', []),
    (LLAMA, "f(x) = {x | x > 0}", "f(x) = {x | x > 0}", []),
    (LLAMA, 'The set {1} {"name": "f", "parameters": {}}', "The set {1}", [("f", {})]),
    (PYTHONIC, "[f(a=1, b='it\\'s'), g()]", "", [("f", {"a": 1, "b": "it's"}), ("g", {})]),
    (PYTHONIC, '<|python_tag|>[f(a=[1, -2.5e3, True, none_like="x"])]', "", [("f", "problem")]),
    (
        PYTHONIC,
        "[f(a=[1, -2.5e3, True, null, None], b={'k': (1, 2,)})]",
        "",
        [("f", {"a": [1, -2500.0, True, None, None], "b": {"k": [1, 2]}})],
    ),
    (PYTHONIC, 'I call:\n[f(a="x")]\nand wait', "I call:\n\nand wait", [("f", {"a": "x"})]),
    (PYTHONIC, '[f(**{"a b": 1}, c=2)]', "", [("f", {"a b": 1, "c": 2})]),
    (PYTHONIC, "[get-weather.v2(a='\\u00e9\\x41\\n')]", "", [("get-weather.v2", {"a": "éA\n"})]),
    (PYTHONIC, "see [1] and [f] or x[f(1)]", "see [1] and [f] or x[f(1)]", []),
    (MISTRAL, '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]', "", [("f", {"a": 1})]),
    (MISTRAL, 'Well.[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g{}', "Well.", [("f", {"a": 1}), ("g", {})]),
    (MISTRAL, '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": 1}', "", [("f", {"a": 1})]),
    (MISTRAL, '[TOOL_CALLS]{"name": "f", "arguments": {}} bye', "bye", [("f", {})]),
]

BROKEN = [
    # parser, response, name that can still be told, a part of what the model reads about it
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": 1', "f", "ends too early"),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": "x', "f", "ends too early"),
    (HERMES, "<tool_call>{'name': 'f'}</tool_call>", "", "property name enclosed in double quotes"),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>', "f", "NaN is not a JSON value"),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": 1e999}}</tool_call>', "f", "too large"),
    (HERMES, '<tool_call>{"name": "f", "arguments": [1]}</tool_call>', "f", "must be a JSON object"),
    (HERMES, '<tool_call>{"name": "f", "arguments": "x"}</tool_call>', "f", "not valid"),
    (HERMES, '<tool_call>{"arguments": {}}</tool_call>', "", "needs a 'name'"),
    (HERMES, "<tool_call></tool_call>", "", "nothing between the tags"),
    (HERMES, "<tool_call>f(1)</tool_call>", "", "no JSON object"),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": ' + "[" * 300 + "]" * 300 + "}}", "f", "nested deeper"),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": ' + "9" * 5000 + "}}", "f", "too long"),
    (LLAMA, '{"name": "f", "parameters": {"a": ', "f", "ends too early"),
    (LLAMA, '<|python_tag|>{"name": "f", "parameters": {a: 1}}', "f", "property name"),
    (PYTHONIC, "[f(a=1", "f", "ends too early"),
    (PYTHONIC, "[f(1)]", "f", "name=value"),
    (PYTHONIC, "[f(a=os.getcwd())]", "f", "expected a value"),
    (PYTHONIC, "[f(a=__import__('os'))]", "f", "expected a value"),
    (PYTHONIC, "[f(a=" + "[" * 200 + "]" * 200 + ")]", "f", "nested deeper"),
    (MISTRAL, "[TOOL_CALLS]", "", "ends too early"),
    (MISTRAL, '[TOOL_CALLS]f[ARGS]{"a": ', "f", "ends too early"),
    (MISTRAL, "[TOOL_CALLS]sorry, no", "", "no JSON"),
]


@pytest.mark.parametrize(("parser", "response", "left", "calls"), EXAMPLES)
def test_a_response_is_taken_apart(
    parser: ToolCallParser, response: str, left: str, calls: list[tuple[str, Any]]
) -> None:
    parsed = parser.parse(response)
    assert [(c.name, "problem" if c.problem else c.arguments) for c in parsed.calls] == calls
    assert parsed.text == left


@pytest.mark.parametrize(("parser", "response", "name", "said"), BROKEN)
def test_a_broken_call_becomes_feedback(parser: ToolCallParser, response: str, name: str, said: str) -> None:
    (call,) = parser.parse(response).calls
    assert call.name == name
    assert said in call.problem
    assert parser.form in call.problem or "not valid" in call.problem
    assert call.arguments == {}
    assert call.source in response


def test_ids_are_kept_where_the_form_has_them() -> None:
    assert (
        MISTRAL.parse('[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abcdefghi"}]').calls[0].id == "abcdefghi"
    )
    assert MISTRAL.parse("[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}").calls[0].id == "abcdefghi"
    assert HERMES.parse('<tool_call>{"name": "f"}</tool_call>').calls[0].id == ""


def test_good_calls_beside_a_broken_one_are_kept() -> None:
    first, second = HERMES.parse('<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "g", </tool_call>').calls
    assert (first.name, first.problem) == ("f", "")
    assert (second.name, bool(second.problem)) == ("g", True)
    good, bad = PYTHONIC.parse("[f(a=1), g(2)]").calls
    assert (good.name, good.arguments, bad.name, bad.source) == ("f", {"a": 1}, "g", "[g(2)]")


def test_a_broken_call_is_written_as_it_was() -> None:
    response = '<tool_call>\n{"name": "f", \n</tool_call>'
    assert HERMES.format_calls(HERMES.parse(response).calls) == '<tool_call>\n{"name": "f",\n</tool_call>'


def test_unpaired_surrogates_do_not_reach_the_calls() -> None:
    (call,) = HERMES.parse(r'<tool_call>{"name": "f", "arguments": {"a": "x\ud800", "b": "\ud83d\ude00"}}').calls
    assert call.arguments == {"a": "x\ufffd", "b": "\U0001f600"}


def test_parsers_by_name() -> None:
    assert set(PARSERS) == {"hermes", "llama3_json", "llama3_pythonic", "mistral"}
    assert isinstance(make_parser("hermes"), HermesToolCallParser)
    assert make_parser(MISTRAL) is MISTRAL
    with pytest.raises(UnknownToolCallParser, match="did you mean 'hermes'"):
        make_parser("Hermes2")


# -- properties ---------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
TRICKY = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "</think>",
        "<think>",
        '"',
        "\\",
        "```",
        "{",
        "}",
        "[TOOL_CALLS]",
        "\n",
        "]",
        ";",
        "<|python_tag|>",
        "'",
        "[f(",
        ")]",
        "\\u0041",
        "\x00",
        "\u2028",
    ]
)
STRING = st.one_of(TEXT, st.lists(st.one_of(TRICKY, TEXT), max_size=4).map("".join))
VALUE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        STRING,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(STRING, inner, max_size=3)),
    max_leaves=8,
)
NAME = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
CALL = st.builds(ToolCall, NAME, st.dictionaries(STRING, VALUE, max_size=4))
CALLS = st.lists(CALL, min_size=1, max_size=3)
PROSE = st.text("abc ,.\n", max_size=20).map(lambda text: f"{text}\n" if text.strip() else "")
PARSER = st.sampled_from(ALL)
RESPONSE = st.one_of(
    TEXT,
    st.lists(
        st.one_of(
            TRICKY,
            TEXT,
            st.sampled_from(['{"name": "f"', '"arguments": {', '"parameters": {', "[f(", "a=", ", ", "**"]),
        ),
        max_size=12,
    ).map("".join),
)


def exact(calls: Any) -> str:
    """Names and arguments as text that tells 1 from 1.0 and True, and -0.0 from 0.0."""
    return json.dumps([[call.name, call.arguments, call.problem] for call in calls], sort_keys=True)


@settings(max_examples=400, deadline=None)
@given(PARSER, CALLS)
def test_calls_that_are_written_are_read_back_exactly(parser: ToolCallParser, calls: list[ToolCall]) -> None:
    parsed = parser.parse(parser.format_calls(calls))
    assert exact(parsed.calls) == exact(calls)
    assert parsed.text == ""


@settings(max_examples=200, deadline=None)
@given(PARSER, PROSE, CALLS)
def test_text_before_calls_is_kept(parser: ToolCallParser, prose: str, calls: list[ToolCall]) -> None:
    parsed = parser.parse(prose + parser.format_calls(calls))
    assert exact(parsed.calls) == exact(calls)
    assert parsed.text == prose.strip()


@settings(max_examples=400, deadline=None)
@given(PARSER, RESPONSE)
def test_any_text_is_read(parser: ToolCallParser, text: str) -> None:
    parsed = parser.parse(text)
    if not parsed.calls:
        assert parsed.text == text
    for call in parsed.calls:
        assert bool(call.problem) or bool(call.name)


@settings(max_examples=200, deadline=None)
@given(PARSER, CALLS, st.data())
def test_a_response_cut_off_anywhere_is_read(
    parser: ToolCallParser, calls: list[ToolCall], data: st.DataObject
) -> None:
    text = parser.format_calls(calls)
    cut = text[: data.draw(st.integers(0, len(text)))]
    good = [call for call in parser.parse(cut).calls if not call.problem]
    # calls complete before the cut are those that were meant
    if parser is not LLAMA:  # whose strings may hold what looks like a call
        assert exact(good) == exact(calls[: len(good)])


@pytest.mark.parametrize("parser", ALL, ids=lambda p: p.name)
@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        '{"' * 50_000,
        '{"name":' * 20_000,
        "<tool_call>" * 5_000,
        "[TOOL_CALLS]" * 5_000,
        "[f(" * 20_000,
        "[f(a=" + "-" * 50_000,
        "\n[f(a='" * 10_000,
        "<tool_call>{" * 5_000,
        "`" * 50_000,
        "[" * 50_000,
    ],
    ids=lambda t: t[:12],
)
def test_hostile_texts_end(parser: ToolCallParser, text: str) -> None:
    parser.parse(text)
