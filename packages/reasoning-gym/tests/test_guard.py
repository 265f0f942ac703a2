import random

import pytest

from llenvs_reasoning_gym.guard import Refused, check_answer, check_entry
from llenvs_reasoning_gym.recipe import Recipe

INTEGRAL = {"metadata": {"variable": "x", "integrand": "x"}, "answer": "x**2/2 + C"}


@pytest.mark.parametrize(
    "answer",
    [
        "15 - 4 + 95 + 36 - 32 + 29",
        "(1 + 2) * 3 / 4 - -5",
        "4! * 1 * 1 * 1",
        "2**10 % 7 // 2",
        "1.5e3 + .5",
        "0.3[3] + 1",
        "x**3/3 - 2*x**(5/2) + C",
        "sqrt(x)*exp(2*x)*log(abs(x) + 1)/2 + C",
        "asin(x/3) - atan(x)**2 + E**x + pi",
        "-x*cos(x) + y*z + C",
        "2 + 2 == 4",
    ],
)
def test_arithmetic_passes(answer: str) -> None:
    check_answer("simple_integration", answer, INTEGRAL)


@pytest.mark.parametrize(
    "answer",
    [
        "x.__class__",
        "open('f')",
        "eval('1')",
        "print(1)",
        "lambda: 1",
        "[1, 2]",
        "(x for x in y)",
        "x[0]",
        "'text'",
        "f'{x}'",
        "x if x else y",
        "(x := 1)",
        "Lambda(x, x)(1)",
        "Integral(x, x)",
        "Symbol('x')('y')",
        "9**9**9",
        "2**30000",
        "(x + 1)**5000",
        "1e400000",
        "1e999999999",
        "99999!",
        "5!!!!!!!",
        "exp(99999)",
        "exp(exp(exp(9)))",
        "1 << 100",
        "1 +",
        "what is it?",
        "((((",
        "9" * 20_001,
    ],
)
def test_anything_else_is_refused(answer: str) -> None:
    with pytest.raises(Refused):
        check_answer("simple_integration", answer, INTEGRAL)


def test_literals() -> None:
    entry = {"answer": "0 1\n1 0", "metadata": {}}
    check_answer("binary_matrix", "[[0, 1], [1, 0]]", entry)
    check_answer("binary_matrix", "0 1\n1 0", entry)  # equal to the answer, so it is not evaluated
    for answer in ("[[0] * 2] * 2", "[x for x in range(9)]", "list('ab')", "[" * 5000, "0 1\n1 1"):
        with pytest.raises(Refused):
            check_answer("binary_matrix", answer, entry)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("countdown", 20),
        ("puzzle24", 10),
        ("polynomial_multiplication", 40),
        ("simple_integration", 40),
        ("intermediate_integration", 25),
        ("bitwise_arithmetic", 200),
        ("number_sorting", 200),
        ("n_queens", 20),
        ("binary_matrix", 40),
        ("spiral_matrix", 40),
        ("string_insertion", 40),
    ],
)
def test_the_upstreams_own_items_and_answers_pass(name: str, count: int) -> None:
    dataset = Recipe(name, {"size": 10_000, "seed": 1}).build()
    for index in random.Random(0).sample(range(10_000), count):
        entry = dataset[index]
        check_entry(name, entry)
        check_answer(name, entry["answer"], entry, integrals="Integral(" in entry["answer"])
        assert dataset.score_answer(entry["answer"], entry) == 1.0
