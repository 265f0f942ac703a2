import pytest

import llenvs
from llenvs import Action, State
from llenvs.core.errors import InvalidAction

PARTS = [
    {"name": "leg_counting", "weight": 2},
    {"name": "gcd", "weight": 1, "config": {"max_value": 50}},
    {"name": "chain_sum", "weight": 1, "config": {"seed": 7, "size": 3}},
]


def test_right_values() -> None:
    with llenvs.make("reasoning_gym/composite", size=20, seed=42, datasets=PARTS) as env:
        entries = [env.reset(options={"task_index": i})[0].hidden["entry"] for i in range(5)]
        sources = [entry["metadata"]["source_dataset"] for entry in entries]
        assert sources == ["gcd", "leg_counting", "leg_counting", "leg_counting", "chain_sum"]
        assert [entry["answer"] for entry in entries] == ["1", "286", "187", "184", "-2169"]
        assert env.spec.metadata["isolated"] == {}


def test_scoring_goes_to_the_part_with_its_guard_and_repair() -> None:
    parts = [{"name": "puzzle24"}, {"name": "countdown", "config": {"level": 0}}, {"name": "n_queens"}]
    with llenvs.make("reasoning_gym/composite", size=12, datasets=parts, answer_extractor="raw") as env:
        assert set(env.spec.metadata["isolated"]) == {"puzzle24", "countdown", "n_queens"}
        seen = set()
        for index in range(12):
            state, _ = env.reset(options={"task_index": index})
            entry = state.hidden["entry"]
            seen.add(entry["metadata"]["source_dataset"])
            assert env.step(State.from_json(state.to_json()), Action(entry["answer"])).rewards.total == 1.0
            refused = env.step(state, Action("open('f', 'w')")).rewards["score"]
            assert "not scored" in refused.metadata["error"]
            if entry["metadata"]["source_dataset"] == "puzzle24":
                assert env.step(state, Action("6*4*1*1")).rewards["score"].metadata == {"upstream_score": 1.0}
        assert seen == {"puzzle24", "countdown", "n_queens"}


def test_a_state_of_another_dataset_is_refused() -> None:
    with llenvs.make("reasoning_gym/gcd") as gcd, llenvs.make("reasoning_gym/lcm") as lcm:
        state, _ = gcd.reset(seed=0)
        with pytest.raises(InvalidAction, match="belongs to reasoning_gym/gcd"):
            lcm.step(state, Action("1"))


def test_two_codeio_datasets_keep_their_programs_apart() -> None:
    """In the upstream the one built last decides for both."""

    def prompts(**options: int) -> list[str]:
        with llenvs.make("reasoning_gym/codeio", size=3, **options) as env:
            return [env.reset(options={"task_index": i})[0].observation.prompt for i in range(3)]

    with llenvs.make("reasoning_gym/codeio", size=3) as all_levels:
        before = [all_levels.reset(options={"task_index": i})[0].observation.prompt for i in range(3)]
        assert prompts(difficulty=3) != before
        assert [all_levels.reset(options={"task_index": i})[0].observation.prompt for i in range(3)] == before
