"""Values seen at the upstream (reasoning-gym 0.1.25)."""

from typing import Any

import pytest

import llenvs
from llenvs import Action


def item(name: str, index: int, **options: Any) -> dict[str, Any]:
    with llenvs.make(f"reasoning_gym/{name}", **options) as env:
        entry: dict[str, Any] = env.reset(options={"task_index": index})[0].hidden["entry"]
        return entry


def scores(name: str, index: int, answers: list[str | None]) -> list[float]:
    with llenvs.make(f"reasoning_gym/{name}") as env:
        state, _ = env.reset(options={"task_index": index})
        texts = ["no tags" if answer is None else f"<answer>{answer}</answer>" for answer in answers]
        return [round(env.step(state, Action(text)).rewards["score"].reward or 0.0, 5) for text in texts]


def test_leg_counting_items() -> None:
    assert [item("leg_counting", i, size=100)["answer"] for i in (0, 1, 99)] == ["100", "140", "118"]
    assert item("leg_counting", 0)["question"].endswith(
        "Now, how many legs are there in total if you have 3 sea slugs, 12 deers, 2 giraffes, 11 elephants?\n"
    )


def test_leg_counting_scores() -> None:
    answers = ["100", "99", None, "The answer is 100", "100.0", "1000"]
    assert scores("leg_counting", 0, answers) == [1.0, 0.0, 0.0, 0.17647, 0.6, 0.75]


def test_chain_sum() -> None:
    first, second = item("chain_sum", 0), item("chain_sum", 1)
    assert first["question"].endswith("4 + 3 =")
    assert first["answer"] == "7"
    assert "812 + 880 =" in second["question"]
    answers: list[str | None] = ["1692", "1692.0", "+1692", "01692", "1692 apples"]
    assert scores("chain_sum", 1, answers) == [1.0, 1.0, 1.0, 1.0, 0.36364]


@pytest.mark.parametrize(
    ("name", "index", "asked", "answer"),
    [
        ("basic_arithmetic", 3, "Calculate -65 - -9292 + 5869 + -6236.", "8860"),
        ("gcd", 0, "26, 760", "2"),
        ("caesar_cipher", 2, "", "IF YOUR STOMACH IS OUT OF IT MUST BE MENDED"),
        ("word_sorting", 0, "", "DIRECT, dreaming, exclaims, given"),
    ],
)
def test_items(name: str, index: int, asked: str, answer: str) -> None:
    entry = item(name, index)
    assert asked in entry["question"]
    assert entry["answer"] == answer


def test_countdown() -> None:
    metadata = item("countdown", 0)["metadata"]
    assert (metadata["target"], metadata["numbers"]) == (139, [36, 29, 95, 32, 4, 15])
    assert scores("countdown", 0, ["15 - 4 + 95 + 36 - 32 + 29", "139", None]) == [1.0, 0.05, 0.01]


def test_prime_factorization() -> None:
    assert item("prime_factorization", 0)["metadata"]["number"] == 656
    answers: list[str | None] = ["41 × 2 × 2 × 2 × 2", "16 × 41", "2 × 3"]
    assert scores("prime_factorization", 0, answers) == [1.0, 0.5, 0.01]


def test_propositional_logic() -> None:
    assert item("propositional_logic", 0)["metadata"]["premises"] == ["R", "Q"]
    answers: list[str | None] = ["(P ∨ Q)", "(Q ∧ R)", "P", "(P ∨ ¬P)"]
    assert scores("propositional_logic", 0, answers) == [1.0, 1.0, 0.05, 0.25]


def test_tower_of_hanoi() -> None:
    entry = item("tower_of_hanoi", 0)
    moves = entry["answer"].split("\n")
    assert (entry["metadata"]["num_disks"], len(moves), moves[0]) == (3, 7, "Move disk 1 from Peg 3 to Peg 2")


def test_neighbouring_seeds_overlap_unless_they_stride() -> None:
    assert item("leg_counting", 0, seed=43)["question"] == item("leg_counting", 1, seed=42)["question"]
    size = 20

    def questions(seed: int) -> set[str]:
        with llenvs.make("reasoning_gym/leg_counting", size=size, seed=seed, seed_stride=size) as env:
            return {env.reset(options={"task_index": i})[0].observation.prompt for i in range(size)}

    assert len(questions(42) | questions(43)) == 2 * size
