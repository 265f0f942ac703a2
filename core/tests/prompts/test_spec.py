import re

import pytest
import yaml

from llenvs.core.errors import InvalidOption, UnknownOption, UnknownPrompt
from llenvs.inference.prompts import (
    PromptBuilder,
    PromptSpec,
    UnknownFewShot,
    UnknownFragment,
    UnknownSlot,
    UnknownSystemPrompt,
    UnknownTemplate,
    describe_prompt,
    get_system_prompt,
    list_prompts,
    make_prompt,
    make_system_prompt,
)


@pytest.mark.parametrize("spec", [None, "", "  ", "none"])
def test_no_system_prompt(spec: object) -> None:
    assert make_system_prompt(spec) == get_system_prompt("none")


def test_a_name_or_a_text() -> None:
    assert make_system_prompt("general_reasoning") is get_system_prompt("general_reasoning")
    assert make_system_prompt(get_system_prompt("code")) is get_system_prompt("code")
    assert make_system_prompt("Be {brief} now.").render() == "Be {brief} now."
    with pytest.raises(UnknownSystemPrompt) as caught:
        make_system_prompt("general-reasoning")
    assert "did you mean 'general_reasoning'" in str(caught.value)
    assert "a text with a space in it is taken literally" in str(caught.value)


def test_a_mapping() -> None:
    spec = yaml.safe_load("""
        name: chain_of_thought
        text: "You play {game}. Write {\\"x\\": 1} and {other}."
        fragments: [concise, Use English.]
        variables: {game: 2048}
        answer_extractor: last_line
    """)
    prompt = make_system_prompt(spec)
    assert prompt.render() == (
        'Think step by step.\nEnd with "The answer is" and your answer.\n'
        'You play 2048. Write {"x": 1} and {other}.\nBe brief.\nUse English.'
    )
    assert prompt.answer_extractor == "last_line"
    assert make_system_prompt({"fragments": ["helpful", "boxed_answer"]}).answer_extractor == "boxed"


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"nme": "code"}, UnknownOption, "did you mean 'system_prompt.name'"),
        ({"name": "cod"}, UnknownSystemPrompt, "did you mean 'code'"),
        ({"fragments": ["consice"]}, UnknownFragment, "did you mean 'concise'"),
        ({"fragments": "concise"}, InvalidOption, "system_prompt.fragments: has the wrong type, got 'concise'"),
        ({"fragments": [3]}, InvalidOption, "system_prompt.fragments: is no fragment, got 3"),
        ({"text": 3}, InvalidOption, "system_prompt.text: has the wrong type, got 3; valid: a text"),
        ({"text": "a {b}", "variables": {"c": "d"}}, UnknownSlot, "unknown slot 'c'"),
        (3, InvalidOption, "system_prompt: has the wrong type, got 3; valid: a name, a text, or a mapping"),
        (["code"], InvalidOption, "system_prompt: has the wrong type"),
    ],
)  # fmt: skip
def test_faults_in_a_system_prompt(spec: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make_system_prompt(spec)


def test_a_whole_prompt() -> None:
    spec = make_prompt(
        yaml.safe_load("""
        system_prompt: direct_answer
        template: "Q: {question}"
        few_shot:
          - ["2 + 2?", 4]
          - {question: "3 + 3?", answer: "6"}
        format: {text: "One number.", where: user}
    """)
    )
    assert [(m.role, m.content) for m in PromptBuilder(spec).build("1 + 1?")] == [
        ("system", "Reply with the final answer only.\nDo not explain."),
        ("user", "Q: 2 + 2?\n\nOne number."),
        ("assistant", "4"),
        ("user", "Q: 3 + 3?\n\nOne number."),
        ("assistant", "6"),
        ("user", "Q: 1 + 1?\n\nOne number."),
    ]
    assert spec.answer_extractor == "raw"
    assert make_prompt(spec) is spec


def test_short_forms() -> None:
    assert make_prompt() == PromptSpec(get_system_prompt("none"))
    assert make_prompt("code") == PromptSpec(get_system_prompt("code"))
    tags = make_prompt({"few_shot": "answer_tags", "format": "answer_tags", "template": "tagged"})
    assert tags.few_shot is not None
    assert tags.few_shot.name == "answer_tags"
    assert tags.answer_extractor == "tag_based"
    assert tags.template.name == "tagged"
    own = make_prompt({"template": {"name": "own", "template": "{hint}: {question}", "extra_slots": ["hint"]}})
    assert PromptBuilder(own).build("q", hint="h")[0].content == "h: q"
    text = make_prompt({"few_shot": {"examples": [["q", "a"]], "as_messages": False, "header": "See:"}})
    assert PromptBuilder(text).build("x")[0].content == "See:\n\nQuestion: q\nAnswer: a\n\nQuestion: x"
    prefix = make_prompt({"format": {"text": "<think>", "where": "assistant"}})
    assert prefix.for_model("Qwen/Qwen3-8B").assistant_prefix == "<think>"


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"systemprompt": "code"}, UnknownOption, "did you mean 'prompt.system_prompt'"),
        ({"template": "plane"}, UnknownTemplate, "did you mean 'plain'"),
        ({"template": "{qestion}"}, UnknownSlot, "did you mean 'question'"),
        ({"template": {"extra_slots": []}}, InvalidOption, "neither a name nor a template"),
        ({"few_shot": "answer_tag"}, UnknownFewShot, "did you mean 'answer_tags'"),
        ({"few_shot": [["q"]]}, InvalidOption, "few_shot.examples[0]: is no example"),
        ({"few_shot": [{"question": "q"}]}, InvalidOption, "few_shot.examples[0].answer: has the wrong type"),
        ({"few_shot": {"examples": [], "as_messages": "no"}}, InvalidOption, "few_shot.as_messages"),
        ({"format": "answer_tagz"}, UnknownFragment, "did you mean 'answer_tags'"),
        ({"format": {"where": "user"}}, InvalidOption, "needs exactly one of fragment and text"),
        ({"format": {"text": "a b", "where": "top"}}, InvalidOption, "valid: system, user, assistant"),
        ("cod", UnknownSystemPrompt, "did you mean 'code'"),
        (3, InvalidOption, "prompt: has the wrong type"),
    ],
)  # fmt: skip
def test_faults_in_a_prompt(spec: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make_prompt(spec)


def test_listing_and_describing() -> None:
    kinds = list(dict.fromkeys(each.kind for each in list_prompts()))
    assert kinds == ["system prompt", "fragment", "question template", "few-shot set", "model profile"]
    assert [d.kind for d in describe_prompt("multiple_choice")] == ["system prompt", "question template"]
    (code,) = describe_prompt("code")
    assert (
        str(code)
        == """\
system prompt code
  Programming tasks: one Python code block.

    You write correct Python code.
    Write the complete program in one ```python code block.

  fragments: code, code_block
  answer extractor: code_block"""
    )
    (gemma,) = describe_prompt("gemma-2")
    assert gemma.facts["system role"] == "no"
    (smollm,) = describe_prompt("smollm")
    assert smollm.facts["recommended sampling"] == "temperature=0.2, top_p=0.9"
    with pytest.raises(UnknownPrompt, match="did you mean 'gsm8k"):
        describe_prompt("gsm8")
