"""An environment behind a server answers as the one in this process does, value for value."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from probing import behind, config, here

from llenvs import Action, State
from llenvs.container.client import ContainerEnvironment
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.core.registry import environment_registry
from llenvs.core.tools import ToolCall


@pytest.fixture(scope="module")
def env() -> Iterator[ContainerEnvironment]:
    with behind() as made:
        yield made


@pytest.fixture(scope="module")
def local() -> Environment:
    return here()


ACTIONS = [
    Action("3"),
    Action("same"),
    Action("", (ToolCall("say", {"words": "Größe \ud83d\ude00"}, "call_0"),)),
    Action("21"),
]


def test_it_says_the_same_of_itself(env, local):
    assert env.spec == local.spec
    assert len(env) == len(local) == 5
    assert env.available_tools == local.available_tools
    assert env.reward_functions == local.reward_functions == ()
    assert not env.is_sealed


def test_reset_gives_equal_states_and_infos(env, local):
    for arguments in ({"seed": 3}, {"options": {"task_index": 4, "mood": "gay"}}, {"seed": 0, "options": {}}):
        state, info = env.reset(**arguments)
        expected, expected_info = local.reset(**arguments)
        assert state == expected
        assert info == expected_info
        assert type(state.hidden["said"]) is tuple
        assert state.to_json() == expected.to_json()


def test_numpy_integers_are_integers(env, local):
    import numpy as np

    assert env.reset(options={"task_index": np.int64(2)}) == local.reset(options={"task_index": 2})
    assert env.reset(seed=np.uint8(7)) == local.reset(seed=7)


def test_every_step_of_an_episode_is_equal(env, local):
    state, _ = env.reset(options={"task_index": 3})
    expected, _ = local.reset(options={"task_index": 3})
    for action in ACTIONS:
        result, wanted = env.step(state, action), local.step(expected, action)
        assert result.next_state == wanted.next_state
        assert (result.rewards, result.info, result.resolved_action) == (
            wanted.rewards,
            wanted.info,
            wanted.resolved_action,
        )
        assert (result.terminated, result.truncated) == (wanted.terminated, wanted.truncated)
        assert env.compute_rewards(state, action, result.next_state) == wanted.rewards
        state, expected = result.next_state, wanted.next_state
    assert state.is_terminal
    assert result.rewards.total == 1.0


def test_the_hidden_part_that_a_step_left_alone_is_the_very_object(env):
    state, _ = env.reset(options={"task_index": 1})
    assert env.step(state, Action("same")).next_state.hidden is state.hidden
    assert env.step(state, Action("1")).next_state.hidden is not state.hidden


def test_states_are_values_that_need_no_server(env, local):
    state, _ = env.reset(options={"task_index": 2})
    later = env.step(state, Action("1")).next_state
    again = State.from_json(later.to_json())
    assert again == later
    # a copy that no server ever gave, stepped from there, and stepped locally
    assert env.step(again, Action("14")) == local.step(again, Action("14"))
    assert env.step(state, Action("14")).terminated


def test_a_server_that_forgot_a_state_is_sent_it():
    with behind() as env:
        state, _ = env.reset(options={"task_index": 2})
        known = env._known.find(state)
        assert known is not None
        env._known.remember(state, "0" * 32, known.holder)  # a key that the server never gave
        assert env.step(state, Action("14")).terminated
        relearned = env._known.find(state)
        assert relearned is not None
        assert relearned.key == known.key


def test_it_is_safe_under_threads(env):
    state, _ = env.reset(options={"task_index": 2})
    wrong = []

    def steps(number: int) -> None:
        for i in range(20):
            result = env.step(state, Action(str(number if i % 2 else 14)))
            if result.rewards.total != float(number == 14 or i % 2 == 0):
                wrong.append((number, i))

    threads = [threading.Thread(target=steps, args=(n,)) for n in (1, 14, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_hundreds_of_steps_in_flight_from_several_event_loops(env):
    async def episode() -> list[float]:
        states = [(await env.areset(options={"task_index": i % 5}))[0] for i in range(20)]
        steps = [env.astep(states[i % 20], Action(str(7 * (i % 5)))) for i in range(400)]
        return [result.rewards.total for result in await asyncio.gather(*steps)]

    for _ in range(2):  # each run has a loop of its own, which is gone afterwards
        assert asyncio.run(episode()) == [1.0] * 400
    assert env.reset(options={"task_index": 0})[0].hidden["number"] == 0


def test_a_step_that_was_given_up_on_harms_no_other(env):
    async def run() -> float:
        state, _ = await env.areset(options={"task_index": 1})
        slow = asyncio.create_task(env.astep(state, Action("sleep 0.5")))
        await asyncio.sleep(0.1)
        slow.cancel()
        return (await env.astep(state, Action("7"))).rewards.total

    assert asyncio.run(run()) == 1.0


def test_batches(env):
    state, _ = env.reset(options={"task_index": 1})
    results = env.step_batch([state] * 30, [Action(str(i)) for i in range(30)])
    assert [i for i, result in enumerate(results) if result.terminated] == [7]
    with pytest.raises(InvalidOption, match="as many as states"):
        env.step_batch([state], [])


def test_slow_steps_run_side_by_side(env):
    async def run() -> list[str]:
        state, _ = await env.areset(options={"task_index": 1})
        order: list[str] = []

        async def one(text: str) -> None:
            await env.astep(state, Action(text))
            order.append(text)

        await asyncio.gather(one("sleep 1.0"), one("sleep 0.5"), one("same"))
        return order

    assert asyncio.run(run()) == ["same", "sleep 0.5", "sleep 1.0"]


def test_reward_functions_of_the_caller_are_applied_here(env):
    def length(state, action, next_state):
        assert state.hidden["number"] == 7
        return float(len(action.text)), "counted here"

    options = {"extra_rewards": ["format", length]}
    with behind(**options) as extended:
        expected = here(**options)
        state, _ = extended.reset(options={"task_index": 1})
        result = extended.step(state, Action("<answer>1</answer>"))
        assert result == expected.step(state, Action("<answer>1</answer>"))
        assert result.rewards.names == ("found", "words", "format", "length")
        assert result.rewards["length"].reward == 18.0
        assert extended.compute_rewards(state, Action("12"), result.next_state)["length"].reward == 2.0
        assert [f.name for f in extended.reward_functions] == ["format", "length"]


def test_the_registry_builds_it(local):
    container = config(replicas=2).model_dump(exclude={"token"})
    with environment_registry.get(name="probe", adapter="probe", size=2, container=container) as env:
        assert isinstance(env, ContainerEnvironment)
        assert env.spec == local.spec
        assert len(env) == 2


def test_what_an_adapter_prints_breaks_nothing(env):
    state, _ = env.reset(options={"task_index": 1})
    assert env.step(state, Action("print")).rewards.total == 0.0
    assert env.step(state, Action("7")).rewards.total == 1.0
