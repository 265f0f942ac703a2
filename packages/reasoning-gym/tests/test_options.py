import datetime
from typing import Any

import pytest

import llenvs
from llenvs import Action
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange, UnknownEnvironment, UnknownOption
from llenvs.core.options import parse_options
from llenvs_reasoning_gym import ADAPTER
from llenvs_reasoning_gym.catalogue import CATEGORY
from llenvs_reasoning_gym.options import options_for
from llenvs_reasoning_gym.recipe import Recipe
from llenvs_reasoning_gym.upstream import config_class


@pytest.mark.parametrize("name", sorted(CATEGORY))
def test_defaults_are_the_upstreams(name: str) -> None:
    recipe = Recipe.from_options(name, parse_options(options_for(name), {}))
    assert recipe.config == {"size": 500, "seed": 42}
    assert recipe.upstream_config() == config_class(name)(size=500, seed=42)


def make(name: str, **options: Any) -> None:
    llenvs.make(f"reasoning_gym/{name}", **options).close()


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("countdown", {"min_numbers": 9, "max_numbers": 3}, "max_numbers"),
        ("countdown", {"min_numbers": "many"}, "min_numbers"),
        ("leg_counting", {"size": 0}, "size"),
        ("leg_counting", {"size": -1}, "size"),
        ("leg_counting", {"size": 10**30}, "size"),
        ("composite", {"datasets": [{"name": "gcd"}, {"name": "composite"}]}, "datasets.1.name"),
        ("leg_counting", {"seed": None}, "seed"),
        ("leg_counting", {"seed": -1}, "seed"),
        ("leg_counting", {"seed_stride": 0}, "seed_stride"),
        ("leg_counting", {"time_limit": 0}, "time_limit"),
        ("leg_counting", {"reward": "accuracy"}, "reward"),
        ("leg_counting", {"upstream_prompt": "none"}, "upstream_prompt"),
        ("word_ladder", {"size": 20_001}, "size"),
        ("acre", {"size": 10_001}, "size"),
        ("pool_matrix", {"seed": 2**32}, "seed"),
        ("basic_arithmetic", {"format_style": "fancy"}, "format_style"),
        ("word_sorting", {"transformation": "sideways"}, "transformation"),
        ("arc_agi", {"board_format_opts": {"array_brackets": "perhaps"}}, "array_brackets"),
        ("leg_counting", {"level": 99}, "level"),
        ("acre", {"datasets": []}, "datasets"),
        ("composite", {}, "datasets"),
        ("composite", {"datasets": []}, "datasets"),
        ("composite", {"datasets": [{"name": "gcd"}, {"name": "gcd"}]}, "datasets"),
        ("composite", {"datasets": [{"name": "gcd", "weight": 0}]}, "weight"),
        ("composite", {"datasets": [{"name": "word_ladder"}], "size": 30_000}, "size"),
    ],
)
def test_bad_values_name_the_field(name: str, options: dict[str, Any], field: str) -> None:
    with pytest.raises((InvalidOption, UnknownOption), match=field):
        make(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "meant"),
    [
        ("countdown", {"min_number": 3}, "min_numbers"),
        ("leg_counting", {"sise": 3}, "size"),
        ("arc_agi", {"board_format_opts": {"array_bracket": True}}, "array_brackets"),
        ("composite", {"datasets": [{"name": "gcd", "wight": 1}]}, "weight"),
        ("composite", {"datasets": [{"name": "gcd", "config": {"max_valu": 9}}]}, "max_value"),
    ],
)
def test_unknown_options_get_the_nearest(name: str, options: dict[str, Any], meant: str) -> None:
    with pytest.raises(UnknownOption, match=f"did you mean .*{meant}"):
        make(name, **options)


def test_unknown_parts_get_the_nearest() -> None:
    with pytest.raises(UnknownEnvironment, match="chain_sum"):
        make("composite", datasets=[{"name": "chain_sun"}])


def test_values_arrive_as_the_upstream_wants_them() -> None:
    def config(name: str, **options: Any) -> Any:
        return Recipe.from_options(name, parse_options(options_for(name), options)).upstream_config()

    assert config("time_intervals", min_date="2001-02-03").min_date == datetime.date(2001, 2, 3)
    assert config("word_sorting", transformation="uppercase").transformation.name == "UPPERCASE"
    assert config("countdown", operators=["+", "-"]).operators == ("+", "-")
    assert config("arc_agi", board_format_opts={"array_brackets": True}).board_format_opts.array_brackets is True
    assert config("rearc", diff_ub=0.3).diff_ub == 0.3


def test_options_reach_the_items_and_the_spec() -> None:
    with llenvs.make("reasoning_gym/chain_sum", size=3, min_terms=5, max_terms=5) as env:
        state, _ = env.reset(options={"task_index": 1})
        assert state.observation.prompt.count(" + ") + state.observation.prompt.count(" - ") == 4
        assert env.spec.metadata["config"]["min_terms"] == 5
        assert env.spec.metadata["reasoning_gym"] == "0.1.25"
        for index in (3, -1):
            with pytest.raises(TaskIndexOutOfRange):
                env.reset(options={"task_index": index})


def test_describe_shows_the_generators_options() -> None:
    shown = {option.name: option for option in ADAPTER.describe("leg_counting").options}
    assert shown["max_animals"].default == "10"
    assert {"size", "seed", "level", "reward", "answer_extractor", "extra_rewards"} <= set(shown)


def test_correctness_as_the_reward() -> None:
    with llenvs.make("reasoning_gym/leg_counting", reward="correctness", size=1) as env:
        state, _ = env.reset(seed=0)
        near, right = (env.step(state, Action(f"<answer>{a}</answer>")).rewards for a in ("100.0", "100"))
        assert (near["score"].reward, near.total, env.spec.is_success(near)) == (0.6, 0.0, False)
        assert (right.total, env.spec.is_success(right)) == (1.0, True)


def test_native_extraction_is_the_upstreams() -> None:
    with llenvs.make("reasoning_gym/ab", answer_extractor="native", size=1) as env:
        state, _ = env.reset(seed=0)

        def answer(text: str) -> Any:
            return env.step(state, Action(text)).info["answer"]

        assert answer("<answer>1</answer> <answer> 2 </answer> <answer>3") == "2"
        assert answer("<Answer>1</Answer>") is None
        assert answer("<answer></answer>") == ""
        assert answer("<answer>" * 200_000) is None  # quadratic in the upstream


def test_extra_rewards_and_upstream_prompts() -> None:
    with llenvs.make("reasoning_gym/gcd", extra_rewards=["format"], upstream_prompt="direct") as env:
        state, _ = env.reset(options={"task_index": 0})
        system, user = state.observation.messages
        assert (system.role, user.role, user.content) == ("system", "user", state.observation.prompt)
        assert system.content.startswith("Answer the question directly.")
        assert env.step(state, Action("2")).rewards["format"].reward == 0.0
