"""The promises of the contract, also behind a server and in a second process from JSON alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aviary_play import KEYWORDS, WORDS, act, call

import llenvs
from llenvs import Action, State
from llenvs.testing import check_environment
from llenvs.testing.walks import check_walk, check_walk_in_second_process

OWN = str(Path(__file__).with_name("aviary_own.py"))
Policy = Callable[[State[Any], random.Random], Action]


def calculate(state: State[Any], rng: random.Random) -> Action:
    if rng.random() < 0.05:
        return call("submit_answer", answer=str(rng.randrange(100)))
    if rng.random() < 0.2:
        return Action("Let me see.")
    return call("calculator", expr=f"{rng.randrange(100)}*{rng.randrange(100)}")


def search(state: State[Any], rng: random.Random) -> Action:
    if rng.random() < 0.05:
        return call("submit_answer", answer=rng.choice(WORDS))
    look = ("lookup", {"keyword": rng.choice(KEYWORDS)})
    find = ("search", {"entity": rng.choice(WORDS)})
    return rng.choice([act(look), act(look), act(find), act(find, look)])


def tell(state: State[Any], rng: random.Random) -> Action:
    several = act(("get_random_int", {}), ("cast_int", {"x": rng.random() * 9}), ("get_random_int", {}))
    return rng.choice([call("get_random_int"), several, call("print_story", story="a b c d e"), Action("Hm.")])


def dig(state: State[Any], rng: random.Random) -> Action:
    return rng.choice([call("walk", by=rng.randrange(-2, 3)), call("dig"), call("roll"), call("fall")])


def add(state: State[Any], rng: random.Random) -> Action:
    return rng.choice([call("add"), call("add", number=0), Action("one")])


def environments(gsm8k: str, hotpotqa: str) -> dict[str, tuple[str, dict[str, Any], Policy]]:
    return {
        "gsm8k": ("aviary/gsm8k", {"data_dir": gsm8k, "size": 50}, calculate),
        "hotpotqa": ("aviary/hotpotqa", {"data_dir": hotpotqa}, search),
        "dummy": ("aviary/dummy", {"tasks": ["frogs", "kings"], "end_immediately": False, "max_live": 2}, tell),
        "functional": ("aviary/custom", {"env": f"{OWN}:treasure", "env_options": [{}, {"start": 2}]}, dig),
        "closed": ("aviary/custom", {"env": f"{OWN}:Closed", "env_options": {"goal": 9}}, add),
    }


NAMES = ["gsm8k", "hotpotqa", "dummy", "functional", "closed"]


@pytest.mark.parametrize("name", NAMES)
def test_conformance(gsm8k: str, hotpotqa: str, name: str) -> None:
    address, options, policy = environments(gsm8k, hotpotqa)[name]
    report = check_environment(address, options=options, actions=policy, second_process=name == "dummy")
    assert not {"threads", "odd_actions", "old_states"} & set(report.skipped), str(report)


@pytest.mark.parametrize("name", NAMES)
def test_a_walk_branches_anywhere(gsm8k: str, hotpotqa: str, name: str) -> None:
    address, options, policy = environments(gsm8k, hotpotqa)[name]
    with llenvs.make(address, **{"max_steps": 60, **options}) as env:
        check_walk(env, policy)


@pytest.mark.parametrize("name", ["hotpotqa", "functional"])
def test_a_walk_branches_behind_a_server(gsm8k: str, hotpotqa: str, name: str) -> None:
    pytest.importorskip("llenvs_container")
    address, options, policy = environments(gsm8k, hotpotqa)[name]
    with llenvs.make(address, **options) as here, llenvs.make(address, **options, container="process") as there:
        check_walk(here, policy, through=there)


@pytest.mark.parametrize("name", ["gsm8k", "dummy"])
def test_a_walk_branches_in_a_second_process(gsm8k: str, hotpotqa: str, name: str) -> None:
    check_walk_in_second_process(*environments(gsm8k, hotpotqa)[name])
