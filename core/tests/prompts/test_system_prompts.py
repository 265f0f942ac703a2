import re

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts import (
    PromptFragment,
    SystemPrompt,
    UnknownFragment,
    UnknownSlot,
    UnknownSystemPrompt,
    get_fragment,
    get_system_prompt,
    list_fragments,
    list_system_prompts,
    register_fragment,
)

GENERAL = """\
You solve problems carefully.
Think step by step.
Write your final answer between <answer> and </answer>."""


def test_the_named_ones() -> None:
    assert [(p.name, p.answer_extractor) for p in list_system_prompts()] == [
        ("none", None),
        ("general_reasoning", "tag_based"),
        ("direct_answer", "raw"),
        ("chain_of_thought", "pattern"),
        ("math_boxed", "boxed"),
        ("gsm8k", "gsm8k"),
        ("multiple_choice", "multiple_choice"),
        ("text_game", "raw"),
        ("tool_use", None),
        ("code", "code_block"),
    ]
    assert get_system_prompt("general_reasoning").render() == GENERAL
    assert get_system_prompt("none").render() == ""
    assert "\\boxed{}" in get_system_prompt("math_boxed").render()
    assert "<answer>" not in get_system_prompt("direct_answer").render()
    assert all(prompt.doc for prompt in list_system_prompts())
    assert all(fragment.doc for fragment in list_fragments())


def test_adding_says_each_fragment_once_and_keeps_the_format() -> None:
    both = get_system_prompt("tool_use") + get_system_prompt("general_reasoning")
    assert both.name == "tool_use+general_reasoning"
    assert both.render() == get_system_prompt("tool_use").render() + "\n" + GENERAL
    assert both.answer_extractor == "tag_based"
    assert (both + get_system_prompt("general_reasoning")).render() == both.render()


def test_none_is_neutral() -> None:
    none, general = get_system_prompt("none"), get_system_prompt("general_reasoning")
    assert none + general == general == general + none
    assert none + none == none


def test_two_answer_formats_at_once_are_refused() -> None:
    with pytest.raises(InvalidOption, match=r"math_boxed\+gsm8k: asks for two answer formats at once"):
        get_system_prompt("math_boxed") + get_system_prompt("gsm8k")
    with pytest.raises(InvalidOption, match="boxed, tag_based"):
        get_system_prompt("general_reasoning").with_fragment("boxed_answer")


def test_fragments_are_added_and_taken_away() -> None:
    general = get_system_prompt("general_reasoning")
    longer = general.with_fragment("concise").with_fragment(PromptFragment("own", "Answer in French."))
    assert longer.render() == GENERAL + "\nBe brief.\nAnswer in French."
    assert general.render() == GENERAL
    assert longer.with_fragment("concise") == longer
    boxed = general.without_fragment("answer_tags").with_fragment("boxed_answer")
    assert boxed.answer_extractor == "boxed"
    assert boxed.render().endswith("Think step by step.\nWrite your final answer in \\boxed{}.")
    with pytest.raises(UnknownFragment, match="'answer_tag'; did you mean 'answer_tags'"):
        general.without_fragment("answer_tag")


def test_unknown_names_come_with_the_nearest() -> None:
    with pytest.raises(UnknownSystemPrompt) as caught:
        get_system_prompt("general_reasonin")
    assert str(caught.value).startswith(
        "unknown system prompt 'general_reasonin'; did you mean 'general_reasoning'"
    )
    with pytest.raises(UnknownFragment, match="did you mean 'step_by_step'"):
        get_fragment("step-by-step")


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(InvalidOption, match="already registered"):
        register_fragment(PromptFragment("concise", "Something else."))
    assert get_fragment("concise").text == "Be brief."


def test_only_declared_slots_are_slots() -> None:
    literal = SystemPrompt.from_text('Reply as {"answer": x} or \\boxed{answer} or {{x}}.')
    assert literal.render() == 'Reply as {"answer": x} or \\boxed{answer} or {{x}}.'
    game = SystemPrompt(
        "game", (PromptFragment("t", "Play {game} as {role}. {other} {{game}}"),), slots=("game", "role")
    )
    assert game.render(game="Zork {role}", role="thief") == "Play Zork {role} as thief. {other} {game}"
    assert game.bind(game="Zork").slots == ("role",)
    with pytest.raises(InvalidOption, match=re.escape("needs a value for {role}")):
        game.render(game="Zork")
    with pytest.raises(UnknownSlot, match="unknown slot 'games'; did you mean 'game'"):
        game.render(games="Zork")
    with pytest.raises(UnknownSlot, match="has no slots"):
        literal.render(answer="x")
    with pytest.raises(UnknownSlot):
        SystemPrompt("bad", (PromptFragment("t", "Play."),), slots=("game",))
