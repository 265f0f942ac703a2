"""A prompt's extractor reads the format that the prompt asks for."""

import pytest

from llenvs.core.extraction import extractor_names, make_extractor
from llenvs.inference import SamplingParams
from llenvs.inference.prompts import (
    get_few_shot,
    get_fragment,
    get_system_prompt,
    list_fragments,
    list_profiles,
    list_system_prompts,
)

REPLIES = {
    "general_reasoning": ("3 dogs, 4 legs each: 12.\n<answer>12</answer>", "12"),
    "direct_answer": ("12", "12"),
    "chain_of_thought": ("3 * 4 = 12.\nThe answer is 12.", "12"),
    "math_boxed": ("So it is \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
    "gsm8k": ("3 * 4 = 12.\n#### 12", "12"),
    "multiple_choice": ("A is too small.\nThe answer is C", "C"),
    "text_game": ("take lamp", "take lamp"),
    "code": ("Here:\n```python\nprint(1)\n```\n", "print(1)"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_in_the_requested_format_is_read(name: str) -> None:
    reply, answer = REPLIES[name]
    extractor = get_system_prompt(name).answer_extractor
    assert extractor is not None
    found = make_extractor(extractor).extract(reply)
    assert found is not None
    assert found.strip() == answer


def test_every_prompt_with_a_format_is_tried_above() -> None:
    assert {p.name for p in list_system_prompts() if p.answer_extractor} == set(REPLIES)


def test_every_named_extractor_exists() -> None:
    named = {f.answer_extractor for f in list_fragments() if f.answer_extractor}
    assert named == {"tag_based", "boxed", "gsm8k", "multiple_choice", "pattern", "last_line", "raw", "code_block"}
    assert named <= set(extractor_names())


@pytest.mark.parametrize("name", ["answer_tags", "boxed_answer", "gsm8k_answer"])
def test_the_examples_of_a_format_are_read(name: str) -> None:
    extractor = get_fragment(name).answer_extractor
    assert extractor is not None
    answers = [make_extractor(extractor).extract(e.answer) for e in get_few_shot(name).examples]
    assert answers == ["14", "12"]


def test_recommended_sampling_is_valid() -> None:
    for profile in list_profiles():
        params = SamplingParams.model_validate(dict(profile.sampling))
        assert {key: getattr(params, key) for key in profile.sampling} == dict(profile.sampling)
        assert profile.accepts_sampling or not profile.sampling
