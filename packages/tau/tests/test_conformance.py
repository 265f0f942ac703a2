"""The promises of the contract: all ways to talk, all kinds of snapshots; long walks, from other processes too."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import llenvs
from llenvs import Action, State
from llenvs.testing import check_environment, check_walk, check_walk_in_second_process

SCRIPT = ["Hello, I need help.", "Yes, please.", "Can you look again?", "Fine."] * 4
TELECOM_SCRIPT = [
    "My phone has no service.",
    {"tool_calls": [{"name": "toggle_airplane_mode"}]},
    "I did that.",
    {"tool_calls": [{"name": "toggle_roaming"}, {"name": "check_status_bar"}]},
    "And that.",
    {"tool_calls": [{"name": "reboot_device"}]},
] + ["Anything else?"] * 8


def solver(address: str, **options: Any) -> Callable[[State[Any], random.Random], Action]:
    """Calls out of the tasks' solutions, talk, and sometimes what no environment wants."""
    with llenvs.make(address, **options) as env:
        solutions = [env.reference_episode(i) for i in range(min(len(env), 40))]  # type: ignore[attr-defined]
    calls = [a for e in solutions for a in e.actions if a.tool_calls and a.tool_calls[0].name != "done"]

    def policy(state: State[Any], rng: random.Random) -> Action:
        kind = rng.random()
        if kind < 0.25 and options.get("user") != "solo":
            return Action(rng.choice(["Let me check.", "Is that all?", "Please restart your phone."]))
        if kind < 0.3:
            return Action.from_tool_call("no_such_tool", {"x": 1})
        return rng.choice(calls)

    return policy


def test_mock_with_a_script() -> None:
    # another process is the matter of the walks below
    options = {"user_script": SCRIPT[:3]}
    report = check_environment("tau/mock", options=options, secrets=scenario, second_process=False)
    assert set(report.skipped) == {"second_process"}, str(report)


def scenario(state: State[Any]) -> list[str]:
    """What the user alone knows."""
    return [state.hidden["truth"]["scenario"]]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("telecom:small", {"user": "solo", "size": 3}),
        ("telecom", {"user_script": TELECOM_SCRIPT, "tasks": None}),
        ("airline:test", {"user_script": SCRIPT, "max_live": 2}),
        ("retail", {"user_script": SCRIPT, "snapshot_every": 3, "seed": 4, "size": 5, "extra_rewards": "length"}),
    ],
)
def test_other_domains(name: str, options: dict[str, Any]) -> None:
    check_environment(f"tau/{name}", options=options, second_process=False, max_steps=5)


def test_instructions_are_the_task() -> None:
    check_environment(
        "tau/airline", options={"user": "instructions", "size": 4}, second_process=False, max_steps=4
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("retail", {"user_script": SCRIPT, "max_errors": 50, "max_live": 2}),
        ("airline", {"user_script": SCRIPT, "max_errors": 50, "max_snapshots": 5}),
        ("telecom", {"user_script": TELECOM_SCRIPT, "max_errors": 50}),
        ("telecom", {"user": "solo", "max_errors": 50, "max_live": 1, "max_snapshots": 0}),
    ],
)
def test_walks(name: str, options: dict[str, Any]) -> None:
    with llenvs.make(f"tau/{name}", **options) as env:
        check_walk(env, solver(f"tau/{name}", **options))


def test_a_walk_through_the_process_runtime() -> None:
    pytest.importorskip("llenvs_container")
    options = {"user_script": SCRIPT, "max_errors": 50}
    with (
        llenvs.make("tau/retail", **options) as here,
        llenvs.make("tau/retail", **options, container="process") as there,
    ):
        check_walk(here, solver("tau/retail", **options), through=there)


def test_a_walk_in_a_second_process() -> None:
    options = {"user_script": TELECOM_SCRIPT, "max_errors": 50}
    check_walk_in_second_process("tau/telecom", options, solver("tau/telecom", **options))
