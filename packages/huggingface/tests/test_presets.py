"""The readers of the presets, on rows in the layouts of their data sets."""

from typing import Any

import pytest

import llenvs
from llenvs import Action
from llenvs_huggingface.presets import PRESETS
from llenvs_huggingface.scoring import make_scorer

ROWS: dict[str, tuple[dict[str, Any], str, Any]] = {
    # name: a row, the prompt, what is expected
    "hellaswag": (
        {
            "activity_label": "Baking",
            "ctx_a": "A man opens an oven. [header] He",
            "ctx_b": "the tray",
            "endings": ["is hot.", "[step] sings [title] loudly.", "flies", "sleeps"],
            "label": "1",
        },
        "Baking: A man opens an oven. He The tray\n\nA. is hot.\nB. sings. loudly.\nC. flies\nD. sleeps",
        "B",
    ),
    "winogrande": (
        {
            "sentence": "The cup fell off the table as _ was tilted.",
            "option1": "cup",
            "option2": "table",
            "answer": "2",
        },
        "The cup fell off the table as _ was tilted.\n\nA. cup\nB. table",
        "B",
    ),
    "musr": (
        {"narrative": "A story.", "question": "Who?", "choices": "['Ann', 'Bo']", "answer_index": 1},
        "A story.\n\nWho?\n\nA. Ann\nB. Bo",
        "B",
    ),
    "commonsense_qa": (
        {"question": "Where?", "choices": {"label": list("ABCDE"), "text": list("vwxyz")}, "answerKey": "E"},
        "Where?\n\nA. v\nB. w\nC. x\nD. y\nE. z",
        "E",
    ),
    "openbookqa": (
        {"question_stem": "The sun", "choices": {"text": list("wxyz"), "label": list("ABCD")}, "answerKey": "A"},
        "The sun\n\nA. w\nB. x\nC. y\nD. z",
        "A",
    ),
    "nq_open": (
        {"question": "who wrote it", "answer": ["Ann Lee", "A. Lee"]},
        "who wrote it",
        ["Ann Lee", "A. Lee"],
    ),
    "trivia_qa": (
        {"question": "Which city?", "answer": {"value": "Rome", "aliases": ["Roma", "Rome"]}},
        "Which city?",
        ["Roma", "Rome"],
    ),
    "gsm_plus": ({"question": "How many?", "answer": "None"}, "How many?", "None"),
    "aime_2025": ({"problem": "Find n.", "answer": "070"}, "Find n.", "070"),
    "aime_2024_maxwell_jia": ({"Problem": "Find n.", "Answer": 204}, "Find n.", "204"),
    "hle": ({"question": "Why?", "answer": "Because", "answer_type": "exactMatch"}, "Why?", "Because"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_read(name: str) -> None:
    row, prompt, expected = ROWS[name]
    with llenvs.make(f"huggingface/{name}", data=[row]) as env:
        state, _ = env.reset(options={"task_index": 0})
        assert state.observation.prompt == prompt
        assert state.hidden["expected_answer"] == expected
        answer = expected if isinstance(expected, str) else expected[0]
        assert env.step(state, Action(f"<answer>{answer}</answer>")).rewards.total == 1.0
        assert env.step(state, Action("<answer>nothing of this</answer>")).rewards.total == 0.0


def test_the_right_option_of_sciq_is_not_always_the_first() -> None:
    rows = [
        {"question": f"q{i}", "correct_answer": "right", **{f"distractor{k}": f"wrong {k}" for k in (1, 2, 3)}}
        for i in range(12)
    ]
    with llenvs.make("huggingface/sciq", data=rows) as env:
        letters = {env.reset(options={"task_index": i})[0].hidden["expected_answer"] for i in range(12)}
    assert len(letters) > 2


def test_every_preset_is_sound() -> None:
    for name, preset in PRESETS.items():
        assert name == preset.name == name.lower()
        assert preset.repository.count("/") == 1
        assert preset.columns
        scorer = make_scorer(preset.scoring)
        assert scorer.needs_choices == (preset.category == "multiple choice")
        scorer.close()
