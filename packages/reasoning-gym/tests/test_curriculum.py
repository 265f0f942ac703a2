import pytest

import llenvs
from llenvs.core.errors import InvalidOption
from llenvs_reasoning_gym.catalogue import CATEGORY
from llenvs_reasoning_gym.curriculum import level_settings, valid_levels
from llenvs_reasoning_gym.recipe import Recipe
from llenvs_reasoning_gym.upstream import library


def test_leg_counting_levels() -> None:
    assert level_settings("leg_counting", 0) == {
        "min_animals": 1,
        "max_animals": 1,
        "min_instances": 2,
        "max_instances": 4,
    }
    three = level_settings("leg_counting", 3)
    assert (three["min_animals"], three["max_animals"]) == (1, 4)
    assert (three["min_instances"], three["max_instances"]) == (2, 32)


@pytest.mark.parametrize("name", sorted(CATEGORY))
def test_valid_levels_are_those_the_upstream_accepts(name: str) -> None:
    levels = valid_levels(name)
    assert (levels == []) == (name in ("acre", "gsm_symbolic", "list_functions", "knight_swap"))
    for level in levels:
        curriculum = library().factory.create_curriculum(name)
        curriculum.set_global_level(level)
        expected = curriculum.generate_configuration({"size": 5, "seed": 1})
        assert Recipe(name, {"size": 5, "seed": 1, "level": level}).upstream_config() == expected


@pytest.mark.parametrize(
    ("name", "level", "valid"),
    [
        ("caesar_cipher", 2, "0, 1"),
        ("modulo_grid", 1, "0, 2, 3, 4, 5"),
        ("rubiks_cube", 4, "0, 1, 2, 3"),
        ("survo", 2, "0, 1"),
    ],
)
def test_a_level_that_the_upstream_gets_wrong_names_the_valid_ones(name: str, level: int, valid: str) -> None:
    with pytest.raises(InvalidOption, match=f"level.*valid: {valid}$"):
        llenvs.make(f"reasoning_gym/{name}", level=level)


def test_no_curriculum() -> None:
    with pytest.raises(InvalidOption, match="no curriculum"):
        level_settings("acre", 0)


def test_options_beside_a_level_take_precedence() -> None:
    with llenvs.make("reasoning_gym/leg_counting", level=0, max_animals=2) as env:
        config = env.spec.metadata["config"]
        assert (config["min_animals"], config["max_animals"], config["max_instances"]) == (1, 2, 4)
