import subprocess
import sys

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.inference.prompts import (
    FewShot,
    FewShotExample,
    FormatInjection,
    PromptBuilder,
    PromptFragment,
    PromptSpec,
    SystemPrompt,
    UnknownFragment,
    get_few_shot,
    get_system_prompt,
    get_template,
    list_few_shots,
)

BRIEF = SystemPrompt.from_text("Be brief.")
GEMMA = "google/gemma-2-9b-it"


def pairs(messages: tuple[ChatMessage, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


def test_nothing_is_added_by_default() -> None:
    assert pairs(PromptBuilder().build("2 {x} 2?")) == [("user", "2 {x} 2?")]
    chat = (ChatMessage.user("a"), ChatMessage.assistant("b"), ChatMessage.user("c"))
    assert PromptBuilder().build(chat) == chat


def test_system_and_question() -> None:
    builder = PromptSpec(get_system_prompt("gsm8k"), get_template("question_answer")).for_model("gpt-4o")
    assert pairs(builder.build("1 + 1?")) == [
        ("system", get_system_prompt("gsm8k").render()),
        ("user", "Question: 1 + 1?\nAnswer:"),
    ]
    assert builder.answer_extractor == "gsm8k"


def test_the_environments_own_system_text_stays_first() -> None:
    chat = (ChatMessage.system("You sell shoes."), ChatMessage.user("Hello"))
    assert pairs(PromptBuilder(PromptSpec(BRIEF)).build(chat)) == [
        ("system", "You sell shoes.\n\nBe brief."),
        ("user", "Hello"),
    ]


@pytest.mark.parametrize(
    "model", [GEMMA, "mistralai/Mistral-7B-Instruct-v0.2", "o1-mini", "deepseek-ai/DeepSeek-R1"]
)
def test_without_a_system_role_its_text_starts_the_first_user_message(model: str) -> None:
    builder = PromptSpec(BRIEF).for_model(model)
    assert pairs(builder.build("1 + 1?")) == [("user", "Be brief.\n\n1 + 1?")]
    shots = PromptSpec(BRIEF, few_shot=FewShot([("2 + 2?", "4")])).for_model(model)
    assert pairs(shots.build("1 + 1?")) == [
        ("user", "Be brief.\n\n2 + 2?"),
        ("assistant", "4"),
        ("user", "1 + 1?"),
    ]


def test_without_a_system_role_every_system_message_is_moved() -> None:
    image = ImageContent(data=b"png")
    chat = (
        ChatMessage.system("Rules."),
        ChatMessage.user("look", (image,)),
        ChatMessage.assistant("ok"),
        ChatMessage.system("New rule."),
        ChatMessage.user("go on"),
    )
    built = PromptSpec(BRIEF).for_model(GEMMA).build(chat)
    assert pairs(built) == [
        ("user", "Rules.\n\nBe brief.\n\nlook"),
        ("assistant", "ok"),
        ("user", "New rule.\n\ngo on"),
    ]
    assert built[0].images == (image,)
    only = (ChatMessage.system("Start."), ChatMessage.assistant("hi"))
    assert pairs(PromptSpec().for_model(GEMMA).build(only)) == [("user", "Start."), ("assistant", "hi")]


def test_the_places_of_a_format_hint() -> None:
    hint = PromptFragment("tags", "Use tags.", answer_extractor="tag_based")

    def built(where: str, model: str = "Qwen/Qwen2.5-0.5B-Instruct") -> list[tuple[str, str]]:
        return pairs(PromptSpec(BRIEF, format=FormatInjection(hint, where)).for_model(model).build("1 + 1?"))

    assert built("system") == [("system", "Be brief.\n\nUse tags."), ("user", "1 + 1?")]
    assert built("user") == [("system", "Be brief."), ("user", "1 + 1?\n\nUse tags.")]
    assert built("assistant") == [("system", "Be brief."), ("user", "1 + 1?")]
    assert built("assistant", "gpt-4o") == [
        ("system", "Be brief."),
        ("user", "1 + 1?\n\nBegin your reply with: Use tags."),
    ]
    assert pairs(PromptBuilder(PromptSpec(format=FormatInjection(hint, "system"))).build("q")) == [
        ("system", "Use tags."),
        ("user", "q"),
    ]


def test_the_assistant_prefix_is_for_models_that_can_continue_it() -> None:
    spec = PromptSpec(format=FormatInjection(PromptFragment("open", "<think>"), "assistant"))
    assert spec.for_model("SmolLM2-135M-Instruct.Q4_1.gguf").assistant_prefix == "<think>"
    assert spec.for_model("claude-sonnet-4-5").assistant_prefix == "<think>"
    assert spec.for_model("claude-opus-4-6").assistant_prefix is None
    assert spec.for_model("gpt-4o").assistant_prefix is None
    assert PromptBuilder(PromptSpec(BRIEF)).assistant_prefix is None


def test_a_longer_chat_begins_with_the_shorter_one() -> None:
    chat = (
        ChatMessage.user("room"),
        ChatMessage.assistant("go east"),
        ChatMessage.user("hall"),
        ChatMessage.assistant("take lamp"),
        ChatMessage.user("taken"),
    )
    for repeat, endings in ((False, ["room\n\nBe brief.", "hall", "taken"]), (True, None)):
        builder = PromptBuilder(
            PromptSpec(
                get_system_prompt("text_game"),
                few_shot=FewShot([("cellar", "go up")]),
                format=FormatInjection("concise", "user", repeat),
            )
        )
        longest = builder.build(chat)
        for end in (1, 3, 5):
            shorter = builder.build(chat[:end])
            assert longest[: len(shorter)] == shorter
        assert [m.content for m in longest if m.role == "user"][1:] == (
            endings or ["room\n\nBe brief.", "hall\n\nBe brief.", "taken\n\nBe brief."]
        )


def test_examples_as_turns_look_like_the_question() -> None:
    spec = PromptSpec(
        BRIEF,
        get_template("multiple_choice"),
        FewShot([FewShotExample("Sky?", "A", {"choices": ["blue", "red"]})]),
        FormatInjection(PromptFragment("letter", "Give the letter.")),
    )
    assert pairs(PromptBuilder(spec).build("Grass?", choices=["pink", "green"])) == [
        ("system", "Be brief."),
        ("user", "Sky?\n\nA. blue\nB. red\n\nGive the letter."),
        ("assistant", "A"),
        ("user", "Grass?\n\nA. pink\nB. green\n\nGive the letter."),
    ]


def test_examples_in_one_text() -> None:
    shots = FewShot([("2 + 2?", "4"), ("3 + 3?", "6")], as_messages=False)
    assert pairs(PromptBuilder(PromptSpec(few_shot=shots)).build("1 + 1?")) == [
        (
            "user",
            "Here are some examples.\n\nQuestion: 2 + 2?\nAnswer: 4\n\nQuestion: 3 + 3?\nAnswer: 6\n\n"
            "Question: 1 + 1?",
        )
    ]
    bare = FewShot([("2 + 2?", "4")], False, header="", question_label="", answer_label="")
    spec = PromptSpec(template=get_template("question_answer"), few_shot=bare)
    assert pairs(PromptBuilder(spec).build("1 + 1?")) == [
        ("user", "Question: 2 + 2?\nAnswer:\n4\n\nQuestion: 1 + 1?\nAnswer:")
    ]
    with pytest.raises(InvalidOption, match=r"few_shot.examples\[0\]: is no example"):
        FewShot(["a question"])


def test_the_registered_examples_end_in_their_format() -> None:
    assert [s.name for s in list_few_shots()] == ["answer_tags", "boxed_answer", "gsm8k_answer"]
    endings = [s.examples[0].answer.splitlines()[-1] for s in list_few_shots()]
    assert endings == ["<answer>14</answer>", "\\boxed{14}", "#### 14"]
    spec = PromptSpec(get_system_prompt("general_reasoning"), few_shot=get_few_shot("answer_tags"))
    assert [m.role for m in PromptBuilder(spec).build("q")] == [
        "system", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


def test_faults_are_said() -> None:
    with pytest.raises(
        InvalidOption, match=r"format\.where: no such place, got 'end'; valid: system, user, assistant"
    ):
        FormatInjection("concise", "end")
    with pytest.raises(InvalidOption, match=r"format\.repeat"):
        FormatInjection("concise", "system", repeat=True)
    with pytest.raises(UnknownFragment, match="did you mean 'concise'"):
        FormatInjection("concize")
    with pytest.raises(InvalidOption, match="prompt: asks for two answer formats at once"):
        PromptSpec(get_system_prompt("math_boxed"), format=FormatInjection("answer_tags"))
    with pytest.raises(InvalidOption, match="have no user message"):
        PromptBuilder().build((ChatMessage.system("x"),), choices="a")


def test_the_explanation_is_what_is_sent() -> None:
    spec = PromptSpec(
        get_system_prompt("general_reasoning"),
        get_template("multiple_choice"),
        get_few_shot("answer_tags"),
        FormatInjection(PromptFragment("open", "Well,"), "assistant"),
    )
    spec = PromptSpec(spec.system_prompt, format=spec.format, few_shot=spec.few_shot)
    for model in (GEMMA, "gpt-5", "Qwen/Qwen3-8B"):
        builder = spec.for_model(model)
        explained = builder.explain("1 + 1?")
        assert [(m.role, m.content) for m in explained.messages] == pairs(builder.build("1 + 1?"))


def test_the_explanation_as_text() -> None:
    spec = PromptSpec(
        get_system_prompt("chain_of_thought"),
        get_template("multiple_choice"),
        format=FormatInjection("concise"),
    )
    assert (
        str(spec.for_model(GEMMA).explain())
        == """\
[1] user
  (system prompt chain_of_thought, fragment step_by_step)
    Think step by step.
  (system prompt chain_of_thought, fragment answer_sentence)
    End with "The answer is" and your answer.
  (question, template multiple_choice)
    {question}

    {choices}
  (format, fragment concise)
    Be brief.
model profile: gemma-2
answer extractor: pattern
note: gemma-2 takes no system message: its text starts the first user message"""
    )


def test_the_explanation_notes_what_the_profile_changes() -> None:
    spec = PromptSpec(format=FormatInjection(PromptFragment("open", "<answer>"), "assistant"))
    gpt = spec.for_model("gpt-5").explain("q")
    assert gpt.notes == (
        "gpt-5 cannot continue a given beginning: the user message asks for it instead",
        "gpt-5 refuses temperature, top_p and top_k",
    )
    qwen = spec.for_model("Qwen/Qwen3-8B").explain("q").as_dict()
    assert qwen == {
        "profile": "qwen3",
        "messages": [
            {"role": "user", "content": "q", "parts": [{"source": "question, template plain", "text": "q"}]}
        ],
        "assistant_prefix": "<answer>",
        "answer_extractor": None,
        "notes": ["qwen3 reasons before it answers: an assistant prefix may cut the reasoning out"],
    }


def test_the_import_brings_nothing_heavy() -> None:
    code = (
        "import sys, llenvs.inference.prompts\n"
        "print([m for m in ('numpy', 'httpx', 'rich', 'yaml', 'torch', 'openai', 'sympy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
