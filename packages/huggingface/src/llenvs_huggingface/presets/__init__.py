"""Presets: data sets whose columns, answers and scoring are known.

The columns come from the data sets' cards and from the task definitions of lm-evaluation-harness 0.4.13 and
lighteval 0.13.0; they are checked against what is loaded.
"""

import dataclasses

from llenvs_huggingface.presets.choice import CHOICE
from llenvs_huggingface.presets.code import CODE
from llenvs_huggingface.presets.mathematics import MATHEMATICS
from llenvs_huggingface.presets.preset import Preset
from llenvs_huggingface.presets.reading import READING

PRESETS: dict[str, Preset] = {preset.name: preset for preset in (*MATHEMATICS, *CHOICE, *READING, *CODE)}
"""Presets by name, in the order of the list."""

_OTHER_NAMES = {
    "competition_math": "math",
    "hendrycks_math": "math",
    "math-500": "math_500",
    "aime24": "aime_2024",
    "aime_24": "aime_2024",
    "aime25": "aime_2025",
    "aime_25": "aime_2025",
    "mmlu-pro": "mmlu_pro",
    "gpqa": "gpqa_diamond",
    "ai2_arc": "arc_challenge",
    "arc": "arc_challenge",
    "hotpotqa": "hotpot_qa",
    "triviaqa": "trivia_qa",
    "truthfulqa": "truthful_qa",
    "big_bench_hard": "bbh",
    "openai_humaneval": "humaneval",
    "human_eval": "humaneval",
    "lcb": "livecodebench",
}
"""Old hub names without an owner, and what people call them."""
_COPIES = {"lukaemon/bbh": "bbh"}
"""Other repositories with the layout of a preset."""


def find_preset(name: str) -> Preset | None:
    """The preset called `name`: its own name, its repository on the hub (the first preset of it), or an old name.

    Case does not count. None when there is none.
    """
    folded = name.casefold()
    if folded in PRESETS:
        return PRESETS[folded]
    if folded in _OTHER_NAMES:
        return PRESETS[_OTHER_NAMES[folded]]
    if folded in _COPIES:
        return dataclasses.replace(PRESETS[_COPIES[folded]], name=name, repository=name)
    for preset in PRESETS.values():
        if preset.repository.casefold() == folded:
            return preset
    return None


__all__ = ["PRESETS", "Preset", "find_preset"]
