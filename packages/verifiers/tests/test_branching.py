"""States stepped from anywhere: by copies, by replay, behind a server, in another process."""

from __future__ import annotations

import random
from typing import Any

import pytest
from conftest import Make

from llenvs import Action, State
from llenvs.core.errors import InvalidOption, ReplayDiverged
from llenvs.testing.walks import check_walk, check_walk_in_second_process


def policy(state: State[Any], rng: random.Random) -> Action:
    tools = {tool.name for tool in state.observation.available_tools}
    if "put" in tools:
        return (
            Action.from_tool_call("put", {"item": rng.choice("abcdef")}) if rng.random() < 0.8 else Action("done")
        )
    if "add" in tools:
        return Action.from_tool_call("add", {"x": rng.randrange(9), "y": 1}) if rng.random() < 0.7 else Action("5")
    if "place" in state.observation.prompt or "goal" in state.observation.prompt:
        return Action(rng.choice(["r", "r", "l", "r"]))
    return Action(rng.choice(["1", "4", "5", "8", "hmm", "<answer>2</answer>"]))


ENVIRONMENTS: list[tuple[str, dict[str, Any]]] = [
    ("vf_tools", {}),
    ("vf_tools", {"branching": "replay", "max_live": 2}),
    ("vf_tools", {"args": {"stateful": True}, "max_live": 2}),
    ("vf_tools", {"args": {"stateful": True}, "branching": "copy"}),
    ("vf_guess", {"args": {"keeps": True}, "max_live": 2}),
    ("vf_guess", {"branching": "copy", "max_snapshots": 3}),
    ("vf_gym", {"max_live": 3}),
    ("vf_gym", {"branching": "copy"}),
    ("vf_mixed", {"max_live": 2}),
]


@pytest.mark.parametrize(("name", "options"), ENVIRONMENTS)
def test_walks_branch_anywhere_in_any_order_from_four_threads(
    make: Make, name: str, options: dict[str, Any]
) -> None:
    env = make(name, **options)
    check_walk(env, policy)
    assert env.stats.live <= env._cache.limits.live


def test_copies_and_replays_are_counted(make: Make) -> None:
    def branches(**options: Any) -> Any:
        env = make("vf_guess", max_live=1, **options)
        state, _ = env.reset(options={"task_index": 0})
        middle = env.step(env.step(state, Action("1")).next_state, Action("2")).next_state
        for text in ("3", "4", "5"):
            env.step(middle, Action(text))
        return env.stats

    copied, replayed = branches(branching="copy"), branches()
    assert (copied.replayed, copied.restored) == (0, 2)
    assert (replayed.replayed, replayed.restored) == (4, 0)


def test_tools_are_not_called_again_by_a_replay(make: Make) -> None:
    import vf_tools

    env = make("vf_tools", branching="replay", max_live=1)
    state, _ = env.reset(options={"task_index": 0})
    middle = env.step(state, Action.from_tool_call("add", {"x": 40, "y": 2})).next_state
    env.step(middle, Action("42"))
    env.reset(options={"task_index": 1})
    vf_tools.CALLED.clear()
    again = env.step(State.from_json(middle.to_json()), Action("42"))
    assert (env.stats.replayed, vf_tools.CALLED) == (1, [])
    assert again.rewards["add_calls"].reward == 1.0


def test_an_environment_that_does_not_repeat_itself_is_found_out(make: Make) -> None:
    env = make("vf_guess", max_live=1)
    state, _ = env.reset(options={"task_index": 0})
    middle = env.step(state, Action("5")).next_state
    env.upstream.env_response = _lies
    env.reset(options={"task_index": 1})
    with pytest.raises(ReplayDiverged, match=r"at step 1.*recorded: 'higher'; replayed: 'never'"):
        env.step(middle, Action("7"))


async def _lies(messages: Any, state: Any, **kwargs: Any) -> Any:
    from verifiers import UserMessage  # type: ignore[attr-defined]

    return [UserMessage(content="never")]


def test_what_cannot_be_copied_says_so(make: Make) -> None:
    import threading

    env = make("vf_guess", branching="copy")
    own = type(env.upstream).setup_state

    async def with_lock(state: Any) -> Any:
        state["lock"] = threading.Lock()
        return await own(env.upstream, state)

    env.upstream.setup_state = with_lock
    with pytest.raises(InvalidOption, match=r"cannot be copied \(TypeError: cannot pickle.*valid: replay"):
        env.reset(options={"task_index": 0})


def test_through_the_process_runtime_and_in_a_second_process(make: Make) -> None:
    pytest.importorskip("llenvs_container")
    env = make("vf_mixed")
    with make("vf_mixed", container="process") as behind:
        check_walk(env, policy, through=behind)
    check_walk_in_second_process("verifiers/vf_mixed", {}, policy)
